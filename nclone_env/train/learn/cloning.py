"""Behaviour cloning: a policy that imitates the actions of trajectories.

The loss is the cross-entropy of the recorded actions: the KL divergence from a reference that puts all probability on
the action taken, so it is computed by the loss of PPO with every other coefficient at 0.
"""

import copy
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import numpy as np
import torch

from nclone_env.errors import TrajectoryError, Within, checked
from nclone_env.game import NUM_ACTIONS
from nclone_env.options import check
from nclone_env.train.learn.adam import Adam
from nclone_env.train.learn.trajectories import EpisodeData, TrajectoryBuffer
from nclone_env.train.policies.arrays import LossScaling
from nclone_env.train.policies.mlp import make_network
from nclone_env.train.policies.network import ActorCritic, FlatParameters
from nclone_env.train.policies.torch_network import log_probs_and_entropies, most_probable

_EVALUATED = 2048
"""Most steps that are evaluated in one call."""


@dataclass(frozen=True)
class CloningSettings:
    """Hyperparameters of cloning."""

    minibatch_size: Annotated[int, Within(1, 1 << 31)] = 64
    """Steps of a minibatch."""
    learning_rate: Annotated[float, Within(0, 1)] = 1e-3
    """Step size of Adam."""
    max_grad_norm: Annotated[float, Within(1e-6, 1e6)] = 0.5
    """Maximum norm of the gradient; larger gradients are scaled down."""
    entropy_coef: Annotated[float, Within(0, 10)] = 0.05
    """Coefficient of an entropy bonus."""
    max_epochs: Annotated[int, Within(0, 10**9)] = 300
    """Most epochs over the trajectories."""
    patience: Annotated[int, Within(0, 10**9)] = 30
    """Epochs without a lower loss on the held-out steps after which the search for the best number of epochs ends."""
    held_out: Annotated[float, Within(0, 0.99)] = 0.1
    """Share of the steps that are held out to choose the number of epochs."""
    least_updates: Annotated[int, Within(0, 10**9)] = 5000
    """Fewest minibatches to learn from, whatever the held-out steps say. A clone of few demonstrations wins more often
    long after the loss on held-out steps has begun to grow."""

    def __post_init__(self) -> None:
        """Reject values out of range."""
        check(self)


class Cloning(NamedTuple):
    """A clone and how it came about."""

    policy: ActorCritic
    """The clone. Its critic is that of the policy it began from, as far as it shares no layers with the actor."""
    steps: int
    """Steps of the trajectories."""
    epochs: int
    """Epochs over all steps."""
    held_out_loss: float
    """Lowest cross-entropy of the held-out steps, in nats, before they were learnt from; nan if none were held out."""
    loss: float
    """Cross-entropy of all steps under the clone, in nats."""
    accuracy: float
    """Share of all steps whose action is the most probable one under the clone."""


@checked()
def clone(
    policy: ActorCritic,
    trajectories: Iterable[EpisodeData],
    observation_space: Any,
    frame_stack: Annotated[int, Within(1, 64)] = 1,
    settings: CloningSettings | None = None,
    seed: Annotated[int, Within(0, 2**63 - 1)] = 0,
) -> Cloning:
    """Train a copy of a policy to imitate trajectories.

    A tenth of the steps is held out first to find the number of epochs with the lowest loss on them; the clone is then
    trained on all steps for as many epochs, or for ``least_updates`` minibatches if those are more.

    Args:
        policy: the policy to begin from; not changed.
        trajectories: demonstrations, as for ``TrajectoryBuffer.fill``.
        observation_space: the ``Dict`` space of one environment.
        frame_stack: depth of the stacks that the policy sees.
        settings: hyperparameters.
        seed: seed of the choice of held-out steps and of the order of the others.

    Raises:
        TrajectoryError: if the trajectories are malformed, or have no steps.
    """
    settings = settings or CloningSettings()
    steps = _load(trajectories, observation_space, frame_stack)
    random = np.random.default_rng(seed)
    held = np.zeros(steps.num_steps, np.bool_)  # single steps: there may be no more than one episode of a level
    held[random.permutation(len(held))[: int(settings.held_out * len(held))]] = True
    epochs, held_out_loss = settings.max_epochs, float("nan")
    if held.any():
        epochs, held_out_loss = _best_epochs(_Student(policy, steps, settings), steps, held, settings, random)
    epochs = max(epochs, -(-settings.least_updates // -(-steps.num_steps // settings.minibatch_size)))
    student, everything = _Student(policy, steps, settings), np.arange(steps.num_steps)
    for _ in range(epochs):
        student.learn(random.permutation(everything))
    loss, accuracy = evaluate_clone(student.policy, steps, everything)
    return Cloning(student.policy, steps.num_steps, epochs, held_out_loss, loss, accuracy)


def evaluate_clone(policy: ActorCritic, steps: TrajectoryBuffer, rows: np.ndarray) -> tuple[float, float]:
    """Return the cross-entropy of the actions in n steps, in nats, and the share of them that is most probable."""
    loss = hits = 0.0
    for part in np.array_split(rows, -(-len(rows) // _EVALUATED)):
        chosen, out = torch.from_numpy(part), steps.observation_buffers(len(part))
        steps.gather(chosen, out)
        actions = steps.steps["actions"][chosen]
        with torch.inference_mode():
            logits, _ = policy(out)
            log_probs, _ = log_probs_and_entropies(logits, actions, out.get("action_mask"))
            best = most_probable(logits, out.get("action_mask"))
        loss -= float(log_probs.double().sum())
        hits += float((best == actions).sum())
    return loss / len(rows), hits / len(rows)


class _Student:
    """A copy of a policy that learns."""

    def __init__(self, policy: ActorCritic, steps: TrajectoryBuffer, settings: CloningSettings):
        self.policy, self._settings = copy.deepcopy(policy), settings
        self._parameters = FlatParameters(self.policy)
        self._network = make_network(self.policy, self._parameters, steps, 1, settings.minibatch_size)
        self._optimiser = Adam(len(self._parameters.vector))
        self._gradient, self._sums = np.zeros_like(self._parameters.vector), np.zeros(6)

    def learn(self, order: np.ndarray) -> None:
        """Learn from the steps, (n,) int64, in this order."""
        size, settings = self._settings.minibatch_size, self._settings
        for first in range(0, len(order), size):
            rows = order[first : first + size]
            # No advantages and no value loss; the whole loss is the divergence from the recorded actions.
            numbers = 0.0, 0.0, 1 / len(rows), 0.2, 0.0, settings.entropy_coef, 1.0
            self._network.gradient(0, rows, LossScaling(*map(np.float32, numbers)), self._gradient, self._sums)
            self._optimiser.step(
                self._parameters.vector, self._gradient, settings.learning_rate, settings.max_grad_norm
            )


def _load(trajectories: Iterable[EpisodeData], space: Any, frame_stack: int) -> TrajectoryBuffer:
    """Return the trajectories with their actions as reference distributions."""
    steps = TrajectoryBuffer(space, NUM_ACTIONS, frame_stack=frame_stack)
    steps.fill(trajectories, gamma=1.0, gae_lambda=1.0)
    if steps.num_steps == 0:
        raise TrajectoryError("trajectories: expected at least one step to imitate, got none; pass recordings that win")
    steps.steps["log_probs"].zero_()  # unknown ones are NaN, and the loss multiplies their ratios by advantages of 0
    steps.reference = np.eye(NUM_ACTIONS, dtype=np.float32)[steps.steps["actions"].numpy()]
    return steps


def _best_epochs(
    student: _Student, steps: TrajectoryBuffer, held: np.ndarray, settings: CloningSettings, random: np.random.Generator
) -> tuple[int, float]:
    """Return the number of epochs with the lowest loss on held-out steps, at least 1, and that loss."""
    known, kept = np.flatnonzero(held), np.flatnonzero(~held)
    best = (1, float("inf"))
    for epoch in range(1, settings.max_epochs + 1):
        student.learn(random.permutation(kept))
        loss, _ = evaluate_clone(student.policy, steps, known)
        if loss < best[1]:
            best = epoch, loss
        if epoch - best[0] >= settings.patience:
            break
    return best
