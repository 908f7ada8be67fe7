"""Play a level with given inputs and record what happens frame by frame."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from nclone_env.constants import EXIT_SWITCH, GOLD, LOCKED_DOOR, TRAP_DOOR
from nclone_env.errors import InputsError
from nclone_env.jit import kernel
from nclone_env.level.compile import Level
from nclone_env.level.level_set import pack
from nclone_env.level.load import LevelSource, load_level
from nclone_env.sim.state import make_worlds
from nclone_env.sim.tick import start, tick

if TYPE_CHECKING:
    from numpy.typing import NDArray

_LEAVING = (GOLD, EXIT_SWITCH, LOCKED_DOOR, TRAP_DOOR)  # not active any more once they are used (physics 02, 4.1)


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

    def __len__(self) -> int:
        """Return the number of frames."""
        return len(self.x)


def simulate(level: LevelSource, inputs: Any, entities: bool = False) -> Trajectory:
    """Play a level from its start, one frame per input byte.

    Frames after death or victory are simulated like all others; nothing is cut off.

    Args:
        level: path, map bytes, or a loaded level.
        inputs: one byte 0..15 a frame: jump 1, right 2, left 4, suicide 8; bytes or any sequence of integers.
        entities: also record the entities.

    Raises:
        LevelFormatError: if the level cannot be read.
        InputsError: if an input is not a whole number from 0 to 15.
    """
    compiled = load_level(level)
    levels = pack([compiled])
    codes = check_inputs(inputs)
    worlds = make_worlds(1, levels, len(codes))
    frames = len(codes)
    ninjas = np.zeros(frames, dtype=worlds.ninjas.dtype)
    entity_frames = frames if entities else 0
    states = np.zeros((entity_frames, worlds.entity_states.shape[1]), dtype=np.uint8)
    movers = np.zeros((entity_frames, worlds.movers.shape[1]), dtype=worlds.movers.dtype)
    record_frames(levels.arrays, worlds, codes, ninjas, states, movers)
    recorded = _entity_columns(compiled, states, movers) if entities else {}
    return Trajectory(
        x=ninjas["x"].copy(),
        y=ninjas["y"].copy(),
        xspeed=ninjas["vx"].copy(),
        yspeed=ninjas["vy"].copy(),
        state=ninjas["state"].copy(),
        airborne=ninjas["airborne"] != 0,
        walled=ninjas["walled"] != 0,
        gold=ninjas["gold"].copy(),
        **recorded,
    )


def check_inputs(inputs: Any) -> NDArray[np.uint8]:
    """Return the input bytes as (T,) uint8.

    Raises:
        InputsError: naming the first value that is not a whole number from 0 to 15.
    """
    codes = np.frombuffer(inputs, np.uint8) if isinstance(inputs, (bytes, bytearray)) else np.asarray(inputs)
    if codes.ndim != 1 or (codes.size and codes.dtype.kind not in "iu"):
        raise InputsError(
            f"inputs: expected a one-dimensional sequence of whole numbers from 0 to 15, one a frame, "
            f"got dtype {codes.dtype} and shape {codes.shape}"
        )
    bad = np.flatnonzero((codes < 0) | (codes > 15))
    if len(bad):
        raise InputsError(
            f"inputs: expected bytes from 0 to 15 (jump 1, right 2, left 4, suicide 8), "
            f"got {codes[bad[0]]} at frame {bad[0]}"
        )
    return codes.astype(np.uint8)


@kernel
def record_frames(levels, worlds, inputs, ninjas, entity_states, movers):
    """Play world 0 from the start of level 0; write its state after each frame into rows.

    Those of the entities are left out if ``entity_states`` has no rows.
    """
    start(levels, worlds, 0, 0)
    for frame in range(inputs.shape[0]):
        tick(levels, worlds, 0, inputs[frame])
        ninjas[frame] = worlds.ninjas[0]
        if entity_states.shape[0] > 0:
            for slot in range(entity_states.shape[1]):
                entity_states[frame, slot] = worlds.entity_states[0, slot]
            for number in range(movers.shape[1]):
                movers[frame, number] = worlds.movers[0, number]


def _entity_columns(level: Level, states: np.ndarray, movers: np.ndarray) -> dict[str, np.ndarray]:
    table, slots = level.entities, level.table.mover_slots
    kinds = table["type"].astype(np.int16)
    x, y = (np.tile(table[name].astype(np.float64), (len(states), 1)) for name in ("x", "y"))
    x[:, slots], y[:, slots] = movers["x"][:, : len(slots)], movers["y"][:, : len(slots)]
    leaves = np.isin(kinds, _LEAVING)
    active = ~leaves | (states[:, : len(table)] == 0)
    return {"entity_type": kinds, "entity_x": x, "entity_y": y, "entity_active": active}
