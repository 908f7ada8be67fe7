"""N worlds of a level set, played from Python.

::

    session = Session("jumps/01-stairs", num_worlds=64)
    session.play(bytes([RIGHT]) * 30)                    # the same 30 frames in every world
    session.tick(rng.integers(0, 8, 64))                 # one frame, one input byte a world
    best = session.worlds.ninjas["x"].argmax()
    session.gather(np.full(64, best))                    # continue from the best world in all of them
    frames = session.record(bytes([RIGHT]) * 30, best)   # state of one world after each frame

Each call plays all worlds in one kernel call. To loop over frames or worlds faster than Python can, write a kernel that
takes ``session.levels`` and ``session.worlds`` (docs/environments/snapshots.md).
"""

from collections.abc import Iterator
from typing import Any, NamedTuple, SupportsIndex

import numpy as np

from nclone_env.errors import InputsError, LevelIndexError, WorldIndexError, as_array
from nclone_env.game import CELEBRATING, DEAD
from nclone_env.jit import kernel
from nclone_env.level import LevelSet, LevelSource, load_level, pack
from nclone_env.machine import check_fits
from nclone_env.sim.frame import start, tick
from nclone_env.sim.pace import Pace
from nclone_env.sim.plausible import read_world
from nclone_env.sim.state import (
    MOVER,
    NINJA_RECORD,
    NO_CELL,
    World,
    copy_world,
    equal_worlds,
    gather_worlds,
    hash_world,
    make_worlds,
    place_world,
    world_at,
)
from nclone_env.sim.store import WorldArrays, mover_of, state_of

MOST_FRAMES = 1 << 30
"""Frames of a world from its start; the counter has 32 bits."""
MOST_ENTRIES = 1 << 30
"""Entries into cells after which they are renumbered; a mover enters at most one cell per frame."""
_EXPECTED_INPUTS = "inputs: expected integers from 0 to 15"
_MANY = 1 << 18  # frames whose states may not fit into memory
MAX_INPUT = 15


class Frames(NamedTuple):
    """The state of one world after each of T frames.

    Attributes:
        ninjas: (T,) ``NINJA_RECORD``.
        entity_states: (T, E) uint8, as in ``WorldArrays``; (0, E) if entities were not recorded.
        movers: (T, M) ``MOVER``; (0, M) if entities were not recorded.
    """

    ninjas: np.ndarray
    entity_states: np.ndarray
    movers: np.ndarray


class Session:
    """N worlds, all at the start of the first level to begin with.

    Args:
        levels: one level, or a packed level set.
        num_worlds: N.
        max_frames: most frames that a world is played from its start; bounds the memory of the worlds if there are evil
            ninjas. None: no limit.

    Attributes:
        level_set: the packed levels.
        levels: their arrays, for kernels.
        worlds: the worlds, for kernels; changed in place, never replaced.

    Raises:
        LevelFormatError: if the level cannot be read.
        UnknownLevelError: if there is no such level.
    """

    def __init__(self, levels: LevelSource | LevelSet, num_worlds: int = 1, max_frames: int | None = None):
        self.level_set = levels if isinstance(levels, LevelSet) else pack([load_level(levels)])
        self._max_frames = max_frames
        self.worlds = make_worlds(num_worlds, self.level_set, max_frames)
        self.levels = self.level_set.arrays  # which the worlds have completed
        self._spare: WorldArrays | None = None  # for gather
        self._pace = Pace()
        self._one_frame = np.zeros((1, num_worlds), dtype=np.uint8)
        self.start()

    def __len__(self) -> int:
        """Return the number of worlds."""
        return len(self.worlds.ninjas)

    def __getitem__(self, world: SupportsIndex) -> World:
        """Return one of the worlds; what is written to it, but for the trail, is written to the world."""
        return world_at(self.worlds, self._world(world))

    @property
    def ninja(self) -> np.void:
        """The ``NINJA_RECORD`` of the first world, a view."""
        return self.worlds.ninjas[0]

    @property
    def over(self) -> np.ndarray:
        """(N,) bool; whether the ninja is dead or has won."""
        return np.isin(self.worlds.ninjas["state"], (DEAD, CELEBRATING))

    def entities(self, world: SupportsIndex = 0) -> np.ndarray:
        """Return the (E,) ``ENTITY`` records of the level that a world plays, a view."""
        return self.level_set.entities_of(self.worlds.ninjas[self._world(world)]["level"])

    def entity_states(self, world: SupportsIndex = 0) -> np.ndarray:
        """Return (E,) uint8, the state byte of each of these entities, a view."""
        return self[world].entity_states

    def start(self, levels: Any = 0) -> None:
        """Put every world at the start of a level.

        Args:
            levels: index in the level set, one for all worlds or (N,).

        Raises:
            LevelIndexError: if an index is not in the level set, or there are not N.
        """
        chosen = as_array(levels, LevelIndexError, "levels: expected integers")
        count = len(self.level_set.levels)
        if chosen.dtype.kind not in "iu" or chosen.shape not in ((), (len(self),)):
            got = f"dtype {chosen.dtype} and shape {chosen.shape}"
            raise LevelIndexError(f"levels: expected an integer or {len(self)} integers, got {got}")
        if chosen.min() < 0 or chosen.max() >= count:
            raise LevelIndexError(f"levels: expected indices from 0 to {count - 1}, got {levels}")
        start_worlds(self.levels, self.worlds, np.full(len(self), chosen, dtype=np.int64))

    def tick(self, inputs: Any) -> None:
        """Play one frame in every world.

        Args:
            inputs: input byte 0..15 (jump 1, right 2, left 4, suicide 8), one for all worlds or (N,) integers.

        Raises:
            InputsError: if a value is not a whole number from 0 to 15, or there are not N;
                or a world would get older than 2**30 frames.
        """
        codes = as_array(inputs, InputsError, _EXPECTED_INPUTS)
        if codes.dtype.kind not in "iu" or codes.shape not in ((), (len(self),)):
            got = f"dtype {codes.dtype} and shape {codes.shape}"
            raise InputsError(f"inputs: expected an integer or {len(self)} integers from 0 to 15, got {got}")
        if codes.min() < 0 or codes.max() > MAX_INPUT:
            raise InputsError(f"inputs: expected bytes from 0 to 15, got {codes.min()} to {codes.max()}")
        self._one_frame[0] = codes
        for _ in self._pieces(1):
            play_worlds(self.levels, self.worlds, self._one_frame)

    def play(self, inputs: Any) -> None:
        """Play T frames in every world.

        Args:
            inputs: bytes or (T,) integers for all worlds alike, or (T, N) integers; as for :meth:`tick`.

        Raises:
            InputsError: if a value is not a whole number from 0 to 15, or the shape is wrong;
                or a world would get older than 2**30 frames.
        """
        if isinstance(inputs, (bytes, bytearray)) or as_array(inputs, InputsError, _EXPECTED_INPUTS).ndim == 1:
            codes = np.repeat(check_inputs(inputs)[:, np.newaxis], len(self), axis=1)
        else:
            given = as_array(inputs, InputsError, _EXPECTED_INPUTS)
            if given.ndim != 2 or given.shape[1] != len(self):
                expected = f"shape (frames,) or (frames, {len(self)})"
                raise InputsError(f"inputs: expected {expected}, got {given.shape}")
            codes = check_inputs(given.reshape(-1)).reshape(given.shape)
        for first, last in self._pieces(len(codes)):
            play_worlds(self.levels, self.worlds, codes[first:last])

    def record(self, inputs: Any, world: SupportsIndex = 0, entities: bool = True) -> Frames:
        """Play T frames in one world; return its state after each of them.

        Args:
            inputs: bytes or (T,) integers; as for :meth:`tick`.
            world: index of the world.
            entities: also record the entities.

        Raises:
            InputsError: if an input is not a whole number from 0 to 15, or the world would get older than 2**30 frames.
            MemoryLimitError: if the states need more memory than is available.
            WorldIndexError: if there is no such world.
        """
        index, codes = self._world(world), check_inputs(inputs)
        rows = len(codes) if entities else 0
        if len(codes) > _MANY:
            check_fits("inputs", len(codes), sum(part.nbytes for part in self[index][: 3 if entities else 1]))
        sizes = len(self[index].entity_states), len(self[index].movers)
        frames = Frames(
            np.zeros(len(codes), NINJA_RECORD), np.zeros((rows, sizes[0]), np.uint8), np.zeros((rows, sizes[1]), MOVER)
        )
        for first, last in self._pieces(len(codes), index):
            record_world(self.levels, self.worlds, index, codes, first, last, *frames)
        return frames

    def copy(self, source: SupportsIndex, target: SupportsIndex) -> None:
        """Make one world a copy of another.

        Raises:
            WorldIndexError: if there is no such world.
        """
        copy_world(self.worlds, self._world(source), self.worlds, self._world(target))

    def gather(self, indices: Any) -> None:
        """Replace every world i by a copy of world ``indices[i]`` as it was before the call.

        The first call allocates a second set of worlds, which is kept.

        Args:
            indices: (N,) integers; any world, any number of times.

        Raises:
            WorldIndexError: if there are not N indices, or one of them is not a world.
        """
        chosen = as_array(indices, WorldIndexError, "indices: expected integers")
        if chosen.dtype.kind not in "iu" or chosen.shape != (len(self),):
            got = f"dtype {chosen.dtype} and shape {chosen.shape}"
            raise WorldIndexError(f"indices: expected {len(self)} integers, got {got}")
        for index in (chosen.min(), chosen.max()):
            self._world(index)
        if self._spare is None:
            self._spare = make_worlds(len(self), self.level_set, self._max_frames)
        gather_worlds(self.worlds, chosen.astype(np.int64), self._spare)
        gather_worlds(self._spare, np.arange(len(self)), self.worlds)

    def equal(self, left: SupportsIndex, right: SupportsIndex) -> bool:
        """Return whether two worlds are equal bit by bit, and so have the same future.

        Raises:
            WorldIndexError: if there is no such world.
        """
        return bool(equal_worlds(self.worlds, self._world(left), self._world(right)))

    def hash(self, world: SupportsIndex = 0) -> int:
        """Return 64 bits over everything in a world, the frame counter included.

        Raises:
            WorldIndexError: if there is no such world.
        """
        return int(hash_world(self.worlds, self._world(world)))

    def snapshot(self, world: SupportsIndex = 0) -> bytes:
        """Return all state of a world as bytes, as many as its level needs.

        Raises:
            WorldIndexError: if there is no such world.
        """
        return self[world].tobytes()

    def restore(self, snapshot: bytes, world: SupportsIndex = 0) -> None:
        """Restore a world from a snapshot.

        Args:
            snapshot: from a session of the same levels.
            world: index of the world.

        Raises:
            SnapshotError: if the snapshot is of other levels, as far as size and numbers tell, or cannot be played.
            WorldIndexError: if there is no such world.
        """
        index = self._world(world)
        most = int(self.worlds.rooms["trail"]["used"][-1])
        place_world(self.levels, self.worlds, index, read_world(snapshot, self.level_set, most, "<snapshot>"))

    def _pieces(self, frames: int, world: int | slice = slice(None)) -> Iterator[tuple[int, int]]:
        """Yield the ends of the pieces in which frames of one world or of all are to be played."""
        age = int(self.worlds.ninjas["frame"][world].max()) + frames
        if age > MOST_FRAMES:
            got = f"got {age:,}; start again"
            raise InputsError(f"inputs: expected at most {MOST_FRAMES:,} frames from the start, {got}")
        for piece in self._pace.pieces(0, frames):
            renumber_entries(self.worlds, self.level_set)
            yield piece

    def _world(self, world: SupportsIndex) -> int:
        index = world.__index__()
        if not 0 <= index < len(self):
            raise WorldIndexError(f"world: expected an index from 0 to {len(self) - 1}, got {index}")
        return index


def renumber_entries(worlds: WorldArrays, levels: LevelSet) -> None:
    """Renumber the entries of each world whose counter is large; their order, and so the future, stays the same."""
    if worlds.ninjas["next_order"].max() <= MOST_ENTRIES:
        return
    for index in np.flatnonzero(worlds.ninjas["next_order"] > MOST_ENTRIES):
        ninja, movers = worlds.ninjas[index], world_at(worlds, int(index)).movers
        first = int(levels.arrays.header[ninja["level"]]["entity_count"])  # below it are the orders of the level itself
        entered = np.flatnonzero((movers["cell"] != NO_CELL) & (movers["order"] >= first))
        movers["order"][entered[np.argsort(movers["order"][entered], kind="stable")]] = first + np.arange(len(entered))
        ninja["next_order"] = first + len(entered)


@kernel
def start_worlds(levels, worlds, chosen):
    """Put world i at the start of level ``chosen[i]``, an (N,) int64 array."""
    for index in range(chosen.shape[0]):
        start(levels, worlds, index, chosen[index])


@kernel
def play_worlds(levels, worlds, inputs):
    """Play frame after frame of each world; ``inputs`` is (T, N) uint8."""
    for index in range(inputs.shape[1]):
        for frame in range(inputs.shape[0]):
            tick(levels, worlds, index, inputs[frame, index])


@kernel
def record_world(levels, worlds, index, inputs, first, last, ninjas, entity_states, movers):
    """Play frames ``first`` to ``last - 1`` of (T,) inputs in one world and write its state after each of them.

    Row ``t`` of the arrays of ``Frames`` is the state after frame ``t``. Entities are left out if ``entity_states`` has
    no rows.
    """
    for frame in range(first, last):
        tick(levels, worlds, index, inputs[frame])
        ninjas[frame] = worlds.ninjas[index]
        if entity_states.shape[0] > 0:
            for slot in range(entity_states.shape[1]):
                entity_states[frame, slot] = state_of(worlds, index, slot)
            for number in range(movers.shape[1]):
                movers[frame, number] = mover_of(worlds, index, number)


def check_inputs(inputs: Any) -> np.ndarray:
    """Return input bytes, or a sequence of integers, one a frame, as (T,) uint8."""
    is_bytes = isinstance(inputs, (bytes, bytearray))
    codes = np.frombuffer(inputs, np.uint8) if is_bytes else as_array(inputs, InputsError, _EXPECTED_INPUTS)
    if codes.ndim != 1 or (codes.size and codes.dtype.kind not in "iu"):
        raise InputsError(
            f"inputs: expected a one-dimensional sequence of whole numbers from 0 to 15, one a frame, "
            f"got dtype {codes.dtype} and shape {codes.shape}"
        )
    bad = np.flatnonzero((codes < 0) | (codes > MAX_INPUT))
    if len(bad):
        raise InputsError(
            f"inputs: expected bytes from 0 to 15 (jump 1, right 2, left 4, suicide 8), "
            f"got {codes[bad[0]]} at frame {bad[0]}"
        )
    return codes.astype(np.uint8)
