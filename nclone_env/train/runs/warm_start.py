"""Warm start: the policy begins as a clone of demonstrations, and PPO keeps it close to the clone for a while."""

import copy
import math
from typing import NamedTuple

from torch import Tensor

from nclone_env.errors import ConfigError
from nclone_env.train.config import TrainConfig
from nclone_env.train.learn.cloning import Cloning, clone
from nclone_env.train.learn.demonstrations import Demonstrated, demonstrate
from nclone_env.train.learn.reference import DeviceReference, Reference, make_reference
from nclone_env.train.policies.network import ActorCritic
from nclone_env.train.runs.run import TrainingRun, most_rows


class WarmStart(NamedTuple):
    """How a run was started."""

    demonstrated: Demonstrated
    """The demonstrations, and those that were not used."""
    cloning: Cloning
    """The clone."""

    def __str__(self) -> str:
        """Return what was used, and what came of it, as lines of text."""
        cloning, (trajectories, _, skipped) = self.cloning, self.demonstrated
        lines = [f"not used: {source}: {reason}" for source, reason in skipped.items()]
        held_out = "" if math.isnan(cloning.held_out_loss) else f", {cloning.held_out_loss:.3f} on held-out steps"
        lines.append(
            f"cloned {len(trajectories)} demonstrations, {cloning.steps:,} steps, in {cloning.epochs} epochs: "
            f"cross-entropy {cloning.loss:.3f} nats{held_out}, {cloning.accuracy:.1%} of the actions most probable"
        )
        return "\n".join(lines)


def warm_start(run: TrainingRun) -> WarmStart:
    """Clone the demonstrations of the configuration into the policy of a new run.

    The critic stays as it was initialised. Shared layers are those of the clone.
    """
    config, space = run.config, run.collectors[0].envs.single_observation_space
    demonstrated = demonstrate(config.clone.warm_start, run.environment, run.planner)
    if not demonstrated.trajectories:
        reasons = "; ".join(f"{source}: {reason}" for source, reason in demonstrated.skipped.items())
        raise ConfigError(f"warm_start: expected at least one recording that can be used, got none: {reasons}")
    cloning = clone(run.policy, demonstrated.trajectories, space, config.frame_stack, seed=config.seed)
    run.policy.load_state_dict(cloning.policy.state_dict())
    if config.keeps_clone:
        run.reference = _reference(run, cloning.policy)
    return WarmStart(demonstrated, cloning)


def reference_coefficient(config: TrainConfig, timesteps: int) -> float:
    """Return the coefficient of the KL divergence from the clone in the update that follows so many timesteps.

    It decreases linearly from ``clone_kl_coef`` at the first update to 0 at ``clone_kl_steps``.
    """
    if not config.keeps_clone:
        return 0.0
    return config.clone.kl_coef * max(0.0, 1 - (timesteps - config.batch_size) / config.clone.kl_steps)


def evaluate_reference(run: TrainingRun) -> float:
    """Compute what the loss needs of the clone in the stored rollout; return its coefficient in this update."""
    coefficient = reference_coefficient(run.config, run.counters.timesteps)
    if coefficient > 0 and run.reference is not None:
        run.reference.evaluate(run.workers)
    return coefficient


def reference_state(run: TrainingRun) -> dict[str, Tensor]:
    """Return the parameters of the clone by name, for a checkpoint; none without a clone."""
    if run.reference is None:
        return {}
    return {name: parameter.clone() for name, parameter in run.reference.policy.state_dict().items()}


def restore_reference(run: TrainingRun, state: dict[str, Tensor]) -> None:
    """Keep the policy of a resumed run close to the clone of a checkpoint."""
    if bool(state) != run.config.keeps_clone:
        expected, got = ("a clone", "none") if run.config.keeps_clone else ("no clone", "one")
        raise ValueError(f"warm_start: expected {expected} in it, got {got}")
    if state:
        policy = copy.deepcopy(run.policy)
        policy.load_state_dict(state)
        run.reference = _reference(run, policy)


def _reference(run: TrainingRun, policy: ActorCritic) -> Reference | DeviceReference:
    return make_reference(policy, run.storage, run.workers.count, most_rows(run.config, run.ranks))
