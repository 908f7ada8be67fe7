"""Other trainers on the same environments, for ``profiling.training.speed``."""

from __future__ import annotations

import time
from typing import Any

import numpy as np


def plain_loop(levels: tuple[str, ...], seconds: float) -> float:
    """Return steps/s of PPO as a single-file implementation writes it: torch tensors, one loop, autograd, Adam.

    The hyperparameters and the network are this trainer's defaults; rewards, observations and ends
    pass through ``torch.as_tensor``, advantages are computed by a loop over tensors.
    """
    import torch
    from torch import nn

    from nclone_env.train import TrainConfig, make_environments, make_policy

    config = TrainConfig.of(levels=levels)
    num_envs, num_steps = config.num_envs, config.num_steps
    envs = make_environments(config.evaluated_environment, num_envs)
    policy = make_policy(config, {"game_state": (30,)})
    adam = torch.optim.Adam(policy.parameters(), lr=config.ppo.learning_rate, eps=1e-5)
    shape, gamma, gae_lambda = (num_steps, num_envs), config.environment.reward.gamma, config.ppo.gae_lambda
    observations, actions = torch.zeros(*shape, 30), torch.zeros(shape, dtype=torch.int64)
    log_probs, rewards, dones, values = (torch.zeros(shape) for _ in range(4))
    seen = torch.as_tensor(envs.reset(seed=0)[0]["game_state"])
    done = torch.zeros(num_envs)

    def update() -> None:
        nonlocal seen, done
        for t in range(num_steps):
            observations[t], dones[t] = seen, done
            with torch.no_grad():
                logits, value = policy({"game_state": seen})
                choice = torch.distributions.Categorical(logits=logits)
                action = choice.sample()
                actions[t], log_probs[t], values[t] = action, choice.log_prob(action), value
            after, reward, terminated, truncated, _ = envs.step(action.numpy())
            rewards[t] = torch.as_tensor(reward)
            seen, done = torch.as_tensor(after["game_state"]), torch.as_tensor(terminated | truncated).float()
        with torch.no_grad():
            following, carried, advantages = policy({"game_state": seen})[1], torch.zeros(num_envs), rewards.clone()
            for t in reversed(range(num_steps)):
                goes_on = 1 - (done if t == num_steps - 1 else dones[t + 1])
                error = rewards[t] + gamma * following * goes_on - values[t]
                advantages[t] = carried = error + gamma * gae_lambda * goes_on * carried
                following = values[t]
            returns = (advantages + values).flatten()
        flat = observations.flatten(0, 1), actions.flatten(), log_probs.flatten(), advantages.flatten()
        for _ in range(config.ppo.update_epochs):
            for rows in torch.randperm(config.batch_size).split(config.minibatch_size):
                x, a, old, advantage = (column[rows] for column in flat)
                logits, value = policy({"game_state": x})
                choice = torch.distributions.Categorical(logits=logits)
                ratio = (choice.log_prob(a) - old).exp()
                advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
                low, high = 1 - config.ppo.clip_coef, 1 + config.ppo.clip_coef
                loss = -torch.min(advantage * ratio, advantage * ratio.clamp(low, high)).mean()
                loss = loss + config.ppo.value_coef * 0.5 * (value - returns[rows]).square().mean()
                loss = loss - config.ppo.entropy_coef * choice.entropy().mean()
                adam.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(policy.parameters(), config.ppo.max_grad_norm)
                adam.step()

    update()
    calls, started = 0, time.perf_counter()
    while (passed := time.perf_counter() - started) < seconds:
        update()
        calls += 1
    envs.close()
    return calls * config.batch_size / passed


def stable_baselines(levels: tuple[str, ...], seconds: float, fields: dict[str, Any]) -> float:
    """Return steps/s of Stable-Baselines3's PPO; nan if it is not installed.

    It has the encoders, the hidden layers and the hyperparameters of this trainer's configuration with ``fields``.
    """
    try:
        from stable_baselines3 import PPO
    except ImportError:
        return float("nan")
    from torch import nn

    from nclone_env.train import NPlusPlusVecEnv, TrainConfig

    config = TrainConfig.of(levels=levels, **fields)
    hidden = [config.hidden_size] * 2
    trunk, towers = (hidden, []) if config.shared_trunk else ([], {"pi": hidden, "vf": hidden})
    hyperparameters: dict[str, Any] = {
        "n_steps": config.num_steps,
        "batch_size": config.minibatch_size,
        "n_epochs": config.ppo.update_epochs,
        "gamma": config.environment.reward.gamma,
        "learning_rate": config.ppo.learning_rate,
        "policy_kwargs": {
            "features_extractor_class": _extractor_class(trunk),
            "net_arch": towers,
            "activation_fn": nn.ReLU,
        },
    }
    envs = NPlusPlusVecEnv(config.evaluated_environment, config.num_envs)
    model = PPO("MultiInputPolicy", envs, device="cpu", **hyperparameters)
    model.learn(config.batch_size)
    calls, started = 0, time.perf_counter()
    while (passed := time.perf_counter() - started) < seconds:
        model.learn(config.batch_size, reset_num_timesteps=False)
        calls += 1
    envs.close()
    return float(np.divide(calls * config.batch_size, passed))


def _extractor_class(trunk: list[int]) -> Any:
    """Return a class of Stable-Baselines3 feature extractors: this trainer's encoders and layers of those widths."""
    import torch
    from stable_baselines3.common.torch_layers import BaseFeaturesExtractor, create_mlp
    from torch import nn

    from nclone_env.train.policies.network import make_encoders

    class Extractor(BaseFeaturesExtractor):
        def __init__(self, space: Any):
            encoders = make_encoders({name: part.shape for name, part in space.items()})
            widths = (encoder.width if encoder else np.prod(space[name].shape) for name, encoder in encoders.items())
            width = int(sum(widths))
            super().__init__(space, trunk[-1] if trunk else width)
            self.encoders, self.trunk = encoders, nn.Sequential(*create_mlp(width, -1, trunk, nn.ReLU))
            self.modules_of_encoders = nn.ModuleList(filter(None, encoders.values()))

        def forward(self, observations: Any) -> Any:
            return self.trunk(torch.cat([_encoded(observations, *item) for item in self.encoders.items()], dim=1))

    return Extractor


def _encoded(observations: Any, name: str, encoder: Any) -> Any:
    """Return the features of an observation; vectors, which have no encoder, are their own."""
    if encoder is None:
        return observations[name].flatten(1)
    return encoder(*(observations[part] for part in encoder.inputs))
