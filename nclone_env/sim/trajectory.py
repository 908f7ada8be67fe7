"""Play a level with given inputs and record its state frame by frame, or at random to measure its speed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from time import process_time
from typing import TYPE_CHECKING, Any

import numpy as np

from nclone_env._table import outline
from nclone_env.errors import check_value
from nclone_env.game import KINDS
from nclone_env.level import Level, LevelSet, LevelSource, RawLevel, load_level, pack
from nclone_env.machine import check_fits
from nclone_env.sim.session import Frames, Session, check_inputs

if TYPE_CHECKING:
    from numpy.typing import NDArray

_COLUMNS = dict.fromkeys(("x", "y", "xspeed", "yspeed"), "f8")
_COLUMNS |= {"state": "i1", "airborne": "?", "walled": "?", "gold": "i2"}
"""What a trajectory keeps of the ninja."""
_NAMES = {"xspeed": "vx", "yspeed": "vy"}  # of its state
_PIECE = 1 << 14  # frames
_VANISHING = tuple(kind.number for kind in KINDS if kind.vanishes)
_SLOW = 20_000  # frames a second; all 970 levels of the official and two community packs reach 75,000 and more
_SUSPECT = 100  # entities that act in every frame; levels with fewer are fast
_STRETCH, _LONGEST = 32, 10_000  # frames


@dataclass(frozen=True, eq=False)
class Trajectory:
    """State after each of T frames; row i is the state after the frame driven by input i.

    Attributes:
        x, y: (T,) float64, centre of the ninja, pixels.
        xspeed, yspeed: (T,) float64, pixels per frame.
        state: (T,) int8, 0 immobile, 1 running, 2 sliding, 3 jumping, 4 falling, 5 wall sliding, 6 dead,
            7 dying, 8 won (physics 01, section 5).
        airborne, walled: (T,) bool.
        gold: (T,) int16, pieces collected so far.
        entity_type: (E,) int16, or None without ``entities=True``.
        entity_x, entity_y: (T, E) float64, pixels, or None.
        entity_active: (T, E) bool, or None; False once gold, an exit switch or the switch of a door is taken.
    """

    x: NDArray[np.float64]
    y: NDArray[np.float64]
    xspeed: NDArray[np.float64]
    yspeed: NDArray[np.float64]
    state: NDArray[np.int8]
    airborne: NDArray[np.bool_]
    walled: NDArray[np.bool_]
    gold: NDArray[np.int16]
    entity_type: NDArray[np.int16] | None = None
    entity_x: NDArray[np.float64] | None = None
    entity_y: NDArray[np.float64] | None = None
    entity_active: NDArray[np.bool_] | None = None

    __repr__ = outline

    def __len__(self) -> int:
        """Return the number of frames."""
        return len(self.x)


def simulate(level: LevelSource, inputs: Any, entities: bool = False) -> Trajectory:
    """Play a level from its start, one frame per input byte.

    Frames after death or victory are simulated like all others.

    Args:
        level: name, path, bytes, or a loaded level.
        inputs: one byte 0..15 a frame: jump 1, right 2, left 4, suicide 8; bytes or any sequence of integers.
        entities: also record the entities.

    Raises:
        LevelFormatError: if the level cannot be read.
        InputsError: if an input is not a whole number from 0 to 15.
    """
    check_value("entities", bool, entities)
    loaded, codes = load_level(level), check_inputs(inputs)
    session = Session(_packed(loaded), max_frames=len(codes))
    check_fits("inputs", len(codes), sum(np.dtype(kind).itemsize for kind in _COLUMNS.values()))
    columns: dict[str, Any] = {name: np.empty(len(codes), kind) for name, kind in _COLUMNS.items()}
    piece = len(codes) if entities else _PIECE
    recorded: dict[str, Any] = {}
    for first in range(0, max(len(codes), 1), max(piece, 1)):  # a row of states is far larger than what is kept of it
        frames = session.record(codes[first : first + piece], entities=entities)
        for name, column in columns.items():
            column[first : first + piece] = frames.ninjas[_NAMES.get(name, name)]
        recorded = _entity_columns(session.level_set, frames) if entities else {}
    return Trajectory(**columns, **recorded)


def compile_kernels() -> None:
    """Compile the kernels of the simulator, or load them."""
    simulate("first-steps/01-walk", bytes(4), entities=True)


@lru_cache(maxsize=16)
def _packed(level: Level) -> LevelSet:
    """Return the level set of one level; it is kept for further runs of the same level object."""
    return pack([level])


def _entity_columns(levels: LevelSet, frames: Frames) -> dict[str, np.ndarray]:
    """Return the entity fields of a trajectory on the only level of a set."""
    entities, slots = levels.entities_of(0), levels.mover_slots_of(0)
    kinds = entities["type"].astype(np.int16)
    x, y = (np.tile(entities[name].astype(np.float64), (len(frames.movers), 1)) for name in ("x", "y"))
    x[:, slots], y[:, slots] = frames.movers["x"][:, : len(slots)], frames.movers["y"][:, : len(slots)]
    leaves = np.isin(kinds, _VANISHING)
    active = ~leaves | (frames.entity_states[:, : len(entities)] == 0)
    return {"entity_type": kinds, "entity_x": x, "entity_y": y, "entity_active": active}


def slow_frames_per_second(raw: RawLevel) -> float | None:
    """Return the frames a second that random play reaches on a slow level, None for a level that is fast enough."""
    types = raw.records[:, 0]
    acting = sum(np.count_nonzero(types == kind.number) for kind in KINDS if kind.acts)
    if acting < _SUSPECT:
        return None
    speed = frames_per_second(raw, 0.05)
    return speed if speed < _SLOW else None


def frames_per_second(raw: RawLevel, seconds: float) -> float:
    """Return the frames a second of random play, measured for some seconds of processor time of this machine."""
    session, random, frames = Session(load_level(raw), max_frames=2 * _LONGEST), np.random.default_rng(0), 0
    session.play(bytes(1))  # loads the kernel
    began = process_time()
    while (taken := process_time() - began) < seconds:
        session.play(np.full(_STRETCH, random.integers(0, 8)))
        frames += _STRETCH
        if session.over[0] or session.ninja["frame"] > _LONGEST:
            session.start()
    return frames / taken
