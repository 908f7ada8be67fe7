"""Train PPO of Stable-Baselines3 on the built-in levels, and write a submission to the benchmark."""

import sys
import time

from stable_baselines3 import PPO

from nclone_env import EnvironmentConfig
from nclone_env.benchmark import Submission, evaluate, load_track, verify
from nclone_env.train import NPlusPlusVecEnv

steps = int(sys.argv[1]) if len(sys.argv) > 1 else 4_000_000
track = load_track("Builtin-v1")
config = EnvironmentConfig.for_parallel_training(levels=("first-steps", "jumps", "hazards"))
env = NPlusPlusVecEnv(config, num_envs=64)
options = {"n_steps": 128, "batch_size": 2048, "n_epochs": 4, "learning_rate": 1e-3, "ent_coef": 0.02}
model = PPO("MultiInputPolicy", env, seed=0, **options)
began = time.time()
model.learn(steps - steps % (64 * 128))
claimed = {"steps": model.num_timesteps, "seconds": round(time.time() - began)}
run = evaluate(model, track, seed=0, environment=config).claiming(claimed)
command = f"python examples/sb3_benchmark.py {steps}"
Submission(track.name, "state", "4m", "PPO of Stable-Baselines3", (run,), command).save("sb3.zip")
print(verify("sb3.zip"))
