"""Episodes to learn from, and the checks that they pass before a buffer takes them in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from nclone_env.errors import TrajectoryError

CHECKED = 2048
"""Steps whose actions and masks are checked together."""
MASK = "action_mask"
OPTIONAL = ("rewards", "values", "log_probs")
FIELDS = {"actions": np.int64, **dict.fromkeys(OPTIONAL, np.float32)}
"""Fields of a step, as they are stored."""
_MISSING = {"rewards": np.float32(0), "values": np.float32(0), "log_probs": np.float32(np.nan)}
"""What is stored where an episode lacks one of them."""


@dataclass(frozen=True, eq=False)
class EpisodeData:
    """One episode, or a part of one, of T steps; T may be 0.

    The arrays are only read, and only until the intake returns.
    """

    observations: Mapping[str, np.ndarray]
    """Name to (T, *shape), or (T + 1, *shape) with the final observation, which is not stored; dtypes as in the
    observation space. ``action_mask``, (T, a), is among them if actions are masked: 0 for each that is not allowed."""
    actions: np.ndarray
    """(T,) of any integer dtype, from 0 to a - 1."""
    rewards: np.ndarray | None = None
    """(T,) of any float dtype; None: 0."""
    values: np.ndarray | None = None
    """(T,) of any float dtype, value estimates of the observations; None: 0, so that returns with a lambda of 1 are
    discounted sums of rewards."""
    log_probs: np.ndarray | None = None
    """(T,) of any float dtype, log probabilities of the actions; None: unknown, stored as NaN."""
    terminated: bool = False
    """Whether the last step ended the episode in a terminal state. Otherwise it was truncated, or goes on elsewhere."""
    bootstrap_value: float = 0.0
    """Value estimate of what follows the last step; not used if ``terminated``."""


class Columns:
    """The arrays of several episodes by field: lists with an entry for each episode, which refer to the arrays.

    Attributes:
        observations: by name; (T, *shape).
        fields: by the names of ``FIELDS``; (T,), or None where an episode has no such field.
        terminated: whether each ended in a terminal state.
        bootstrap_values: the values of what follows.
        lengths: T of each.
    """

    def __init__(self, episodes: Sequence[EpisodeData], names: Iterable[str]):
        self.lengths = [len(episode.actions) for episode in episodes]
        self.observations = {name: self._rows([episode.observations[name] for episode in episodes]) for name in names}
        self.fields: dict[str, list[Any]] = {name: [getattr(one, name) for one in episodes] for name in FIELDS}
        self.terminated = [episode.terminated for episode in episodes]
        self.bootstrap_values = [episode.bootstrap_value for episode in episodes]

    def add_copies(self, other: Columns) -> None:
        """Append copies of the arrays of others."""
        for mine, others in ((self.observations, other.observations), (self.fields, other.fields)):
            for name, column in mine.items():
                column += [None if array is None else array.copy() for array in others[name]]
        self.terminated += other.terminated
        self.bootstrap_values += other.bootstrap_values
        self.lengths += other.lengths

    def fill_missing(self) -> None:
        """Put what is stored for them in the place of fields that are missing."""
        longest = max(self.lengths, default=0)
        for name, value in _MISSING.items():
            blank = np.broadcast_to(value, longest)  # takes no memory
            pairs = zip(self.fields[name], self.lengths, strict=True)
            self.fields[name] = [blank[:count] if array is None else array for array, count in pairs]

    def release(self, count: int) -> None:
        """Forget the arrays of the first ``count`` episodes."""
        for column in (*self.observations.values(), *self.fields.values()):
            column[:count] = [None] * count

    def _rows(self, column: list[Any]) -> list[Any]:
        """Return observations without the final ones."""
        if [*map(len, column)] == self.lengths:
            return column
        return [array[:count] for array, count in zip(column, self.lengths, strict=True)]


class Block(NamedTuple):
    """Steps ``begin`` to ``end - 1`` of episodes that follow each other; they lie in ``first`` to ``last - 1``."""

    begin: int
    end: int
    first: int
    last: int
    skipped: int
    """Steps of the first episode that lie before the block."""
    excess: int
    """Steps of the last episode that lie behind it."""

    def rows(self, column: list[np.ndarray]) -> list[np.ndarray]:
        """Return the rows of the block, given arrays (T, ...) of all episodes."""
        arrays = column[self.first : self.last]
        if self.excess:
            arrays[-1] = arrays[-1][: len(arrays[-1]) - self.excess]
        if self.skipped:
            arrays[0] = arrays[0][self.skipped :]
        return arrays


def blocks(starts: np.ndarray, size: int) -> Iterator[Block]:
    """Yield blocks of ``size`` steps, and of what is left; ``starts`` as of :func:`first_steps`."""
    count = int(starts[-1])
    for begin in range(0, count, size):
        end = min(begin + size, count)
        first, last = int(starts.searchsorted(begin, "right")) - 1, int(starts.searchsorted(end))
        yield Block(begin, end, first, last, begin - int(starts[first]), int(starts[last]) - end)


def first_steps(lengths: list[int]) -> np.ndarray:
    """Return (E + 1,) int64: the first step of each of E episodes, and the number of steps."""
    starts = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=starts[1:])
    return starts


class TrajectoryChecks:
    """Checks names, shapes, dtypes, actions and masks of trajectories.

    Actions and masks of many episodes are checked together, in copies in arrays that are allocated here.
    """

    def __init__(self, specs: Mapping[str, tuple[tuple[int, ...], np.dtype]], num_actions: int):
        self._specs, self._num_actions = dict(specs), num_actions
        shape, dtype = self._specs.get(MASK, ((0,), np.dtype(np.int8)))
        self._actions, self._masks = np.zeros(CHECKED, np.int64), np.zeros((CHECKED, *shape), dtype)
        self._places = np.arange(CHECKED) * shape[0]  # of the first choice of each step in flat masks

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        return self._actions.nbytes + self._masks.nbytes + self._places.nbytes

    def columns(self, episodes: Iterable[EpisodeData]) -> Columns:
        """Check episodes; return their arrays by field, or copies of them if the episodes are not a sequence.

        Raises:
            TrajectoryError: about the first episode that has a fault.
        """
        if isinstance(episodes, Sequence):
            columns = self._checked(0, episodes)
        else:
            columns = Columns((), self._specs)
            for number, episode in enumerate(episodes):
                columns.add_copies(self._checked(number, (episode,)))
        columns.fill_missing()
        return columns

    def _checked(self, number: int, episodes: Sequence[EpisodeData]) -> Columns:
        """Check episodes, of which the first has a number; return their arrays by field."""
        wrong: TrajectoryError | None = None
        for index, episode in enumerate(episodes):
            if wrong := self._wrong_array(number + index, episode):
                episodes = episodes[:index]  # one of them can have a wrong action
                break
        columns = Columns(episodes, self._specs)
        if fault := self._fault(number, columns) or wrong:
            raise fault
        return columns

    def _wrong_array(self, number: int, episode: EpisodeData) -> TrajectoryError | None:
        """Return the error of an array with a wrong name, shape or dtype, if an episode has one."""
        actions, observations = episode.actions, episode.observations
        if not (isinstance(actions, np.ndarray) and actions.ndim == 1 and actions.dtype.kind in "iu"):
            return _wrong_field(number, "actions", "an integer array of shape (T,)", actions)
        shape = actions.shape
        for name in OPTIONAL:
            array = getattr(episode, name)
            if array is not None and not (
                isinstance(array, np.ndarray) and array.dtype.kind == "f" and array.shape == shape
            ):
                return _wrong_field(number, name, f"floats of shape {shape}", array)
        if observations.keys() != self._specs.keys():
            got, expected = str(sorted(observations)), f"the names {sorted(self._specs)}"
            return _error(number, "observations", expected, got, "record exactly these observations")
        for name, (shape, dtype) in self._specs.items():
            if not _is_observation(observations[name], len(actions), shape, dtype):
                shapes = (len(actions), *shape), (len(actions) + 1, *shape)
                wanted = f"{dtype} of shape {shapes[0]} or, with the final observation, {shapes[1]}"
                got, fix = _described(observations[name]), "record it with the environment of the policy"
                return _error(number, f"observations[{name!r}]", wanted, got, fix)
        return None

    def _fault(self, number: int, columns: Columns) -> TrajectoryError | None:
        """Return the error of the first episode with an action that is out of range or masked, if there is one."""
        starts = first_steps(columns.lengths)
        for block in blocks(starts, CHECKED):
            faulty = self._faulty(block, columns)
            if faulty.any():
                step = block.begin + int(faulty.argmax())
                index = int(starts.searchsorted(step, "right")) - 1
                return self._wrong_choice(number + index, columns.fields["actions"][index], step - int(starts[index]))
        return None

    def _faulty(self, block: Block, columns: Columns) -> np.ndarray:
        """Return whether the action of each step of a block is out of range or masked, (b,) bool."""
        actions = self._actions[: block.end - block.begin]
        np.concatenate(block.rows(columns.fields["actions"]), out=actions)
        faulty = (actions < 0) | (actions >= self._num_actions)
        if MASK in self._specs:
            masks = self._masks[: len(actions)]
            np.concatenate(block.rows(columns.observations[MASK]), out=masks)
            actions[faulty] = 0  # so that they can be looked up
            actions += self._places[: len(actions)]
            faulty |= masks.reshape(-1)[actions] == 0
        return faulty

    def _wrong_choice(self, number: int, actions: np.ndarray, step: int) -> TrajectoryError:
        """Return the error of the first action that is out of range, or else of the masked one at a step."""
        outside = np.flatnonzero((actions < 0) | (actions >= self._num_actions))
        if len(outside):
            expected, got = f"numbers from 0 to {self._num_actions - 1}", f"{actions[outside[0]]} at step {outside[0]}"
            return _error(number, "actions", expected, got, "number them so")
        got = f"action {actions[step]} at step {step}, which its mask excludes"
        return _error(number, "actions", "actions that the mask allows", got, "store the mask the action was chosen by")


def _is_observation(array: Any, count: int, shape: tuple[int, ...], dtype: np.dtype) -> bool:
    """Return whether something is an array of observations of so many steps, with or without the final one."""
    if not isinstance(array, np.ndarray) or array.dtype != dtype or array.shape[1:] != shape or not array.ndim:
        return False
    return 0 <= len(array) - count <= 1


def _wrong_field(number: int, name: str, expected: str, array: Any) -> TrajectoryError:
    return _error(number, name, expected, _described(array), "pass one entry for each step, as a NumPy array")


def _described(value: Any) -> str:
    return f"{value.dtype} of shape {value.shape}" if isinstance(value, np.ndarray) else f"a {type(value).__name__}"


def _error(number: int, name: str, expected: str, got: str, fix: str) -> TrajectoryError:
    return TrajectoryError(f"trajectory {number}: {name}: expected {expected}, got {got}; {fix}")
