"""Stable-Baselines3 through the adapter: the ``VecEnv`` contract and training."""

import runpy
import sys
import warnings
from pathlib import Path

import gymnasium
import numpy as np
import pytest

pytest.importorskip("stable_baselines3")

from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback, EvalCallback
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.vec_env import DummyVecEnv, VecFrameStack, VecMonitor, VecNormalize

from nclone_env import NPlusPlusEnv, NPlusPlusVectorEnv, ObservationFunction, errors
from nclone_env.benchmark import read_submission, verify
from nclone_env.cli.app import main
from nclone_env.game import INPUT_OF_ACTION
from nclone_env.memory import GrowthError, assert_flat
from nclone_env.train.adapters.sb3 import NPlusPlusVecEnv, load_model, model_runs

from ..env.bases import QUICK_DEATH, QUICK_WIN, RIGHT
from ..memory.test_flat import Leaky
from .bases import FIELDS, Kept, check_learned, numbers, run_example

PREFIX = "nclone_env:nclone/NPlusPlus"
SMALL = {"n_steps": 64, "batch_size": 256, "n_epochs": 2, "seed": 7, "device": "cpu"}


class Rollout(BaseCallback):
    """Copies the contents of the rollout buffer at the end of the first rollout."""

    def _on_rollout_end(self) -> None:
        if not hasattr(self, "actions"):
            buffer = self.model.rollout_buffer
            self.actions = buffer.actions.copy()
            self.observations = buffer.observations["game_state"].copy()
            self.rewards = buffer.rewards.copy()

    def _on_step(self) -> bool:
        return True


@pytest.mark.parametrize("by_id", [True, False])
def test_evaluations_log_the_share_of_episodes_won(by_id, tmp_path, monkeypatch):
    fields = {"levels": "first-steps/01-walk", "observations": ("game_state",), "max_frames": 400}
    envs = make_vec_env(f"{PREFIX}-v0", 2, env_kwargs=fields) if by_id else NPlusPlusVecEnv(num_envs=2, **fields)
    model = PPO("MultiInputPolicy", envs, **SMALL)
    monkeypatch.setattr(model, "predict", lambda *_, **__: (np.array([RIGHT, 0]), None))  # wins, times out
    evaluate = EvalCallback(envs, n_eval_episodes=2, eval_freq=1, log_path=str(tmp_path), verbose=0)
    model._setup_learn(1, evaluate)
    evaluate.init_callback(model)
    logged = {}
    monkeypatch.setattr(model.logger, "record", lambda name, value, **_: logged.update({name: value}))
    evaluate.on_step()
    assert sorted(evaluate.evaluations_successes[0]) == [False, True]
    assert logged["eval/success_rate"] == 0.5


@pytest.mark.parametrize("by_id", [True, False])
def test_watch_shows_a_model(by_id, tmp_path, capsys):
    env = make_vec_env(f"{PREFIX}-State-v0", 2) if by_id else NPlusPlusVecEnv(num_envs=2, **FIELDS)
    model = PPO("MlpPolicy" if by_id else "MultiInputPolicy", env, **{**SMALL, "n_steps": 8, "batch_size": 8})
    model.save(tmp_path / "model.zip")
    read, chosen = load_model(tmp_path / "model.zip", ("first-steps/01-walk",))
    assert chosen.dict_observations is not by_id
    (run,) = model_runs(read, chosen.replace(max_frames=50), argmax=True, seed=0)
    observation, _ = (twin := NPlusPlusEnv(chosen.replace(max_frames=50))).reset(seed=0)
    inputs = []
    while len(inputs) < 50:
        action = int(model.predict(observation, deterministic=True)[0])
        observation, *_, info = twin.step(action)
        inputs += [INPUT_OF_ACTION[action]] * info["frames"]
    assert list(run.inputs) == inputs
    film = ["--levels", "first-steps/01-walk", "--scale", "0.1", "--output", str(tmp_path / "a.gif")]
    assert main(["watch", str(tmp_path / "model.zip"), *film, "--candidates", "2"]) == 2
    assert main(["evaluate", str(tmp_path / "model.zip")]) == 2
    assert "got a model of Stable-Baselines3; load it there, or" in capsys.readouterr().err


def place(world, out):
    out[0], out[1] = world.ninja["x"] / 1056, world.ninja["y"] / 600


def test_ppo_learns_from_an_own_observation_for_10_000_steps():
    env = NPlusPlusVecEnv(num_envs=16, observation_function=ObservationFunction(place, 2, -1, 2, "place"), **FIELDS)
    model = PPO("MultiInputPolicy", env, **SMALL)
    before = numbers(model.policy)
    model.learn(10_000)
    check_learned(before, numbers(model.policy))
    assert model.num_timesteps >= 10_000
    env.reset()
    dones = np.zeros(16, bool)
    while not dones.any():
        env.step_async(np.zeros(16, int))
        observations, _, dones, infos = env.step_wait()
    index = int(dones.argmax())
    last = infos[index]["terminal_observation"]["place"]
    assert (last.shape, last.dtype) == ((2,), np.float32)
    assert last.tolist() != observations["place"][index].tolist()


def test_ppo_learns_from_what_the_environments_did():
    env = VecMonitor(NPlusPlusVecEnv(num_envs=16, **FIELDS))
    model = PPO("MultiInputPolicy", env, **SMALL)
    before, rollout = numbers(model.policy), Rollout()
    model.learn(2 * 64 * 16, callback=rollout)
    check_learned(before, numbers(model.policy))

    assert len(model.ep_info_buffer) > 16
    assert all(np.isfinite(episode["r"]) and 0 < episode["l"] <= 50 for episode in model.ep_info_buffer)

    twin = NPlusPlusVectorEnv(None, 16, autoreset_mode="SameStep", **FIELDS)
    observations, _ = twin.reset(seed=7)
    for actions, seen, rewards in zip(rollout.actions, rollout.observations, rollout.rewards):
        np.testing.assert_array_equal(observations["game_state"], seen)
        observations, expected, _, truncated, _ = twin.step(actions.reshape(-1).astype(np.int64))
        played_on = ~truncated  # Stable-Baselines3 adds the value of the last state to the others
        np.testing.assert_array_equal(rewards[played_on], expected[played_on].astype(np.float32))
    twin.close()

    mean, _ = evaluate_policy(model, env, n_eval_episodes=16, deterministic=False)
    assert np.isfinite(mean)
    env.close()


class Masked(BaseCallback):
    """Notes whether all actions that were taken were allowed by their masks, and whether any other was not."""

    all_allowed, some_forbidden = True, False

    def _on_rollout_end(self) -> None:
        buffer = self.model.rollout_buffer
        allowed = np.take_along_axis(buffer.action_masks, buffer.actions.astype(np.int64), axis=-1)
        self.all_allowed &= bool(allowed.all())
        self.some_forbidden |= not buffer.action_masks.all()

    def _on_step(self) -> bool:
        return True


@pytest.mark.parametrize("by_id", [False, True])
def test_maskable_ppo_takes_actions_that_the_mask_allows(by_id):
    maskable = pytest.importorskip("sb3_contrib").MaskablePPO
    fields = FIELDS | {"observations": ("game_state", "action_mask")}
    env = gymnasium.make(f"{PREFIX}-v0", **fields) if by_id else NPlusPlusVecEnv(num_envs=16, **fields)
    model = maskable("MultiInputPolicy", env, **SMALL)
    before, masked = numbers(model.policy), Masked()
    model.learn(1024, callback=masked)
    check_learned(before, numbers(model.policy))
    assert masked.all_allowed
    assert by_id or masked.some_forbidden  # about one mask in a thousand forbids something
    env.close()


def test_evaluating_warns_of_nothing():
    env = NPlusPlusVecEnv(num_envs=4, **FIELDS)
    model = PPO("MultiInputPolicy", env, **SMALL)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mean, _ = evaluate_policy(model, env, n_eval_episodes=8, deterministic=False)
    assert np.isfinite(mean)
    env.close()


def test_ends_of_episodes():
    fields = FIELDS | {"levels": (QUICK_WIN, QUICK_DEATH, "hazards")}
    env = NPlusPlusVecEnv(num_envs=8, **fields)
    twin = NPlusPlusVectorEnv(None, 8, autoreset_mode="SameStep", **fields)
    env.seed(3)
    env.reset()
    _, info = twin.reset(seed=3)
    assert env.reset_infos == [{"level": twin.level_names[level]} for level in info["level"]]
    draw, returns, lengths, kinds, last = np.random.default_rng(0), np.zeros(8), np.zeros(8), set(), Kept()
    for _ in range(150):
        actions = np.where(draw.random(8) < 0.8, RIGHT, draw.integers(0, 6, 8))
        _, rewards, dones, infos = env.step(actions)
        *_, terminated, truncated, info = twin.step(actions)
        np.testing.assert_array_equal(dones, terminated | truncated)
        returns, lengths = returns + rewards, lengths + 1
        for i, row in enumerate(infos):
            if not dones[i]:
                assert row == {}
                continue
            assert row["TimeLimit.truncated"] == (truncated[i] and not terminated[i])
            assert (row["outcome"] == "timed_out") == row["TimeLimit.truncated"]
            assert row["level"] == twin.level_names[info["final_info"]["level"][i]]
            place = np.flatnonzero(dones).tolist().index(i)
            expected = info["final_obs"]["game_state"][place]
            np.testing.assert_array_equal(row["terminal_observation"]["game_state"], expected)
            assert row["episode"]["r"] == pytest.approx(returns[i], rel=1e-12)
            assert row["episode"]["l"] == lengths[i]
            last.add(row["terminal_observation"])
            returns[i] = lengths[i] = 0
            kinds.add(row["outcome"])
    last.check()
    assert kinds == {"won", "died", "timed_out"}
    env.close()
    twin.close()


def test_observations_stay_as_they_were():
    env = NPlusPlusVecEnv(num_envs=4, **FIELDS)
    kept = Kept()
    kept.add(env.reset())
    for action in (2, 5, 5, 2, 1, 4, 0, 2, 2, 2):
        kept.add(env.step(np.full(4, action))[0])
    kept.check()
    env.close()


def test_pictures_go_through_the_network_for_pictures():
    fields = {"observations": ("game_state", "player_frame"), "render": {"player_frame_size": 64}}
    env = NPlusPlusVecEnv(num_envs=4, **FIELDS | fields)
    model = PPO("MultiInputPolicy", env, **SMALL | {"n_steps": 16, "batch_size": 32})
    before = numbers(model.policy)
    model.learn(64)
    check_learned(before, numbers(model.policy))
    assert model.rollout_buffer.observations["player_frame"].dtype == np.uint8
    env.close()


@pytest.mark.parametrize(
    ("env_id", "policy"),
    [("CartPole-v1", "MlpPolicy"), (f"{PREFIX}-State-v0", "MlpPolicy"), (f"{PREFIX}-Pixels-v0", "CnnPolicy")],
)
def test_a_script_needs_no_other_change_than_the_id(env_id, policy):
    model = PPO(policy, make_vec_env(env_id, 2, seed=1), **SMALL | {"n_steps": 16, "batch_size": 32})
    before = numbers(model.policy)
    model.learn(32)
    check_learned(before, numbers(model.policy), 0.1)


@pytest.mark.parametrize("picture", [False, True])
def test_the_adapter_with_one_array(picture):
    pixels = {"observations": "player_frame", "observation": {"frame_stack": 4}, "render": {"player_frame_size": 36}}
    fields = FIELDS | {"dict_observations": False} | (pixels if picture else {})
    env = NPlusPlusVecEnv(num_envs=4, **fields)
    assert env.observation_space.shape == ((4, 36, 36) if picture else (30,))
    model = PPO("CnnPolicy" if picture else "MlpPolicy", env, **SMALL | {"n_steps": 16, "batch_size": 32})
    model.learn(64)
    twin = NPlusPlusVecEnv(num_envs=4, **fields | {"dict_observations": True})
    (name,) = twin.observation_space
    env.seed(2)
    twin.seed(2)
    assert env.reset().tobytes() == twin.reset()[name].tobytes()
    ends = 0
    for actions in np.random.default_rng(0).integers(0, 6, (80, 4)):
        (seen, *_, infos), (expected, *_, others) = env.step(actions), twin.step(actions)
        assert seen.tobytes() == expected[name].tobytes()
        for info, other in zip(infos, others, strict=True):
            if info:
                assert info["terminal_observation"].tobytes() == other["terminal_observation"][name].tobytes()
                assert info["terminal_observation"].shape == env.observation_space.shape
                ends += 1
    assert ends > 3
    env.close()
    twin.close()


def test_wrappers_that_look_at_the_last_observation():
    env = VecNormalize(VecFrameStack(VecMonitor(NPlusPlusVecEnv(num_envs=8, **FIELDS)), 3))
    model = PPO("MultiInputPolicy", env, **SMALL)
    before = numbers(model.policy)
    model.learn(64 * 8)
    check_learned(before, numbers(model.policy))
    assert env.observation_space["game_state"].shape == (90,)
    env.close()


def test_seeds_and_options_hold_for_one_reset():
    env = NPlusPlusVecEnv(num_envs=4, **FIELDS)
    env.seed(5)
    first = [info["level"] for info in (env.reset(), env.reset_infos)[1]]
    env.seed(5)
    env.reset()
    assert [info["level"] for info in env.reset_infos] == first
    level = env.native.level_names[1]
    env.set_options({"level": level})
    env.reset()
    assert env.reset_infos == [{"level": level}] * 4
    seen = set()
    for _ in range(10):
        env.reset()
        seen |= {info["level"] for info in env.reset_infos}
    assert len(seen) > 1
    env.set_options([{"level": 0}, {}, {}, {}])
    with pytest.raises(errors.ConfigError, match="set_options: expected the same options for all environments"):
        env.reset()
    env.close()


def test_what_holds_for_all_environments_at_once():
    env = NPlusPlusVecEnv(num_envs=3, **FIELDS, render_mode="rgb_array")
    env.reset()
    pictures = env.get_images()
    assert [picture.shape for picture in pictures] == [(600, 1056, 3)] * 3
    assert env.render().shape == (1200, 2112, 3)  # tiles, as of any environments
    np.testing.assert_array_equal(env.env_method("render", indices=[2])[0], pictures[2])
    assert env.get_attr("render_mode") == ["rgb_array"] * 3
    assert env.get_attr("num_envs", indices=[0, 2]) == [3, 3]
    assert not env.has_attr("nonsense")
    assert env.env_is_wrapped(VecMonitor) == [False] * 3
    with pytest.raises(errors.ConfigError, match="set_attr: expected no attribute"):
        env.set_attr("frame_skip", 2)
    with pytest.raises(errors.ConfigError, match="env_method: expected 'render'"):
        env.env_method("get_state")
    assert env.memory().total_bytes == env.native.memory().total_bytes
    env.close()
    env.close()


def test_the_example_of_the_documents():
    variables = run_example("Stable-Baselines3")
    assert len(variables["model"].ep_info_buffer) > 0


@pytest.mark.parametrize("wrap", [lambda env: env, Leaky])
def test_growth_of_environments_of_others_is_found(wrap):
    envs = DummyVecEnv([lambda: wrap(gymnasium.make("CartPole-v1"))] * 2)
    model = PPO("MlpPolicy", envs, **SMALL | {"batch_size": 64})
    observations = envs.reset()

    def step():
        nonlocal observations
        observations, *_ = envs.step(model.predict(observations)[0])

    if wrap is not Leaky:
        assert_flat(step, steps=200)
        return
    line = Leaky.step.__code__.co_firstlineno + 2
    with pytest.raises(GrowthError, match=rf"grew +\S*test_flat\.py:{line} \+[0-9.]+ MB per 1,000 steps"):
        assert_flat(step, steps=200)


def test_the_example_of_the_benchmark(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["sb3_benchmark.py", "8192"])
    path = Path(__file__).parents[2] / "examples" / "sb3_benchmark.py"
    assert len(path.read_text().splitlines()) < 32
    runpy.run_path(str(path))
    assert verify("sb3.zip").accepted
    (run,) = read_submission("sb3.zip").runs
    assert run.claimed["steps"] == 8192
    assert len(run.probable.steps) == 16


@pytest.mark.parametrize("algorithm", ["ppo", "dqn", "qr-dqn", "recurrent-ppo"])
def test_the_baselines(algorithm, tmp_path, monkeypatch):
    pytest.importorskip("sb3_contrib")
    monkeypatch.setattr(sys, "argv", ["sb3_baselines.py"])
    names = runpy.run_path(str(Path(__file__).parents[2] / "examples" / "sb3_baselines.py"))
    names["REPLAY"]["learning_starts"] = names["ALGORITHMS"]["qr-dqn"][3]["learning_starts"] = 1000
    path = tmp_path / "sb3.zip"
    names["main"](names["Args"](algorithm, steps=8192, seeds=(0, 1), output=path))
    assert verify(path).accepted
    runs = read_submission(path).runs
    assert [(run.seed, run.claimed["steps"], len(run.probable.steps)) for run in runs] == [(0, 8192, 16), (1, 8192, 16)]
    assert len(np.unique(runs[0].sampled.actions)) > 1
