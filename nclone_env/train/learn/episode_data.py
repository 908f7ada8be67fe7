"""Episodes to learn from, and the checks that they pass before a buffer takes them in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from types import NoneType
from typing import Any, NamedTuple

import numpy as np

from nclone_env.errors import TrajectoryError

CHECKED = 2048
"""Steps whose actions and masks are checked together."""
MASK = "action_mask"
OPTIONAL = ("rewards", "values", "log_probs")
FIELDS = ("actions", *OPTIONAL)


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
        observations: by name; (T, *shape) or, with a final row that ``cut`` leaves out, (T + 1, *shape).
        fields: the names of ``FIELDS``; (T,), or None where an episode has no such field.
        terminated: whether each ended in a terminal state.
        bootstrap_values: the values of what follows.
        lengths: T of each; empty until the arrays are checked.

    None is listed where an episode lacks an observation.
    """

    def __init__(self, episodes: Sequence[EpisodeData], names: Iterable[str]):
        rows = [episode.observations for episode in episodes]
        self.observations: dict[str, list[Any]] = {name: _entries(rows, name) for name in names}
        self.fields: dict[str, list[Any]] = {name: [getattr(one, name) for one in episodes] for name in FIELDS}
        self.terminated = [episode.terminated for episode in episodes]
        self.bootstrap_values = [episode.bootstrap_value for episode in episodes]
        self.lengths: list[int] = []

    def cut(self) -> None:
        """Leave out the final rows of observations."""
        for column in self.observations.values():
            if [*map(len, column)] != self.lengths:
                column[:] = [array[:count] for array, count in zip(column, self.lengths, strict=True)]

    def add_copies(self, other: Columns) -> None:
        """Append copies of the arrays of others."""
        for mine, others in ((self.observations, other.observations), (self.fields, other.fields)):
            for name, column in mine.items():
                column += [None if array is None else array.copy() for array in others[name]]
        self.terminated += other.terminated
        self.bootstrap_values += other.bootstrap_values
        self.lengths += other.lengths

    def release(self, count: int) -> None:
        """Forget the arrays of the first ``count`` episodes."""
        for column in (*self.observations.values(), *self.fields.values()):
            column[:count] = [None] * count


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

    All episodes of a list are checked together, field by field, as most are right and short; they are looked at one by
    one only if that finds something. Actions and masks are copied to arrays that are allocated here.
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
            return self._checked(0, [*episodes])
        whole = Columns((), self._specs)
        for number, episode in enumerate(episodes):
            whole.add_copies(self._checked(number, (episode,)))
        return whole

    def _checked(self, number: int, episodes: Sequence[EpisodeData]) -> Columns:
        """Check episodes, of which the first has a number."""
        columns = Columns(episodes, self._specs)
        named = len(episodes) > 1 and {len(episode.observations) for episode in episodes} == {len(self._specs)}
        if named and self._plain(columns):
            columns.lengths = [*map(len, columns.fields["actions"])]
        else:
            self._check_one_by_one(number, episodes, columns)
        columns.cut()
        if fault := self._fault(number, columns):
            raise fault
        return columns

    def _plain(self, columns: Columns) -> bool:
        """Return whether the shapes and dtypes of all arrays are plainly right."""
        actions = columns.fields["actions"]
        if not _are_arrays(actions, (), "iu"):
            return False
        counts = [*map(len, actions)]
        for name in OPTIONAL:
            given = columns.fields[name]
            if {*map(type, given)} == {NoneType}:
                continue
            if not (_are_arrays(given, (), "f") and [*map(len, given)] == counts):
                return False
        for name, (shape, dtype) in self._specs.items():
            rows = columns.observations[name]
            if not (_are_arrays(rows, shape, dtype.kind, dtype) and _enough(rows, counts)):
                return False
        return True

    def _check_one_by_one(self, number: int, episodes: Sequence[EpisodeData], columns: Columns) -> None:
        """Check names, shapes and dtypes of each episode; append its number of steps to those of the columns."""
        for index, episode in enumerate(episodes):
            try:
                columns.lengths.append(self._length(number + index, episode))
            except TrajectoryError as error:
                raise self._fault(number, columns) or error from None  # an earlier one can have a wrong action

    def _length(self, number: int, episode: EpisodeData) -> int:
        """Check names, shapes and dtypes of an episode; return its number of steps."""
        actions, observations = episode.actions, episode.observations
        if not (isinstance(actions, np.ndarray) and actions.ndim == 1 and actions.dtype.kind in "iu"):
            raise _wrong_field(number, "actions", "an integer array of shape (T,)", actions)
        count = len(actions)
        for name in OPTIONAL:
            array = getattr(episode, name)
            if array is not None and not (
                isinstance(array, np.ndarray) and array.dtype.kind == "f" and array.shape == (count,)
            ):
                raise _wrong_field(number, name, f"floats of shape ({count},)", array)
        if set(observations) != set(self._specs):
            got, expected = str(sorted(observations)), f"the names {sorted(self._specs)}"
            raise _error(number, "observations", expected, got, "record exactly these observations")
        for name, (shape, dtype) in self._specs.items():
            array, shapes = observations[name], ((count, *shape), (count + 1, *shape))
            if not isinstance(array, np.ndarray) or array.shape not in shapes or array.dtype != dtype:
                wanted = f"{dtype} of shape {shapes[0]} or, with the final observation, {shapes[1]}"
                fix = "record it with the environment of the policy"
                raise _error(number, f"observations[{name!r}]", wanted, _described(array), fix)
        return count

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


def _entries(rows: list[Mapping[str, Any]], name: str) -> list[Any]:
    """Return the entries of a name, None where there is none."""
    try:
        return [*map(itemgetter(name), rows)]
    except KeyError:
        return [given.get(name) for given in rows]


def _are_arrays(values: list[Any], shape: tuple[int, ...], kinds: str, dtype: np.dtype | None = None) -> bool:
    """Return whether all values are arrays (any, *shape) of kinds of dtypes or one dtype, and none of a subclass."""
    if {*map(type, values)} != {np.ndarray}:
        return False
    dtypes = {array.dtype for array in values}
    if dtypes != {dtype} if dtype else not all(found.kind in kinds for found in dtypes):
        return False
    return {array.shape[1:] for array in values} == {shape} if shape else {array.ndim for array in values} == {1}


def _enough(rows: list[np.ndarray], counts: list[int]) -> bool:
    """Return whether each array has a row for each step, and at most one more."""
    found = [*map(len, rows)]
    return found == counts or all(0 <= have - count <= 1 for have, count in zip(found, counts, strict=True))


def _wrong_field(number: int, name: str, expected: str, array: Any) -> TrajectoryError:
    return _error(number, name, expected, _described(array), "pass one entry for each step, as a NumPy array")


def _described(value: Any) -> str:
    return f"{value.dtype} of shape {value.shape}" if isinstance(value, np.ndarray) else f"a {type(value).__name__}"


def _error(number: int, name: str, expected: str, got: str, fix: str) -> TrajectoryError:
    return TrajectoryError(f"trajectory {number}: {name}: expected {expected}, got {got}; {fix}")
