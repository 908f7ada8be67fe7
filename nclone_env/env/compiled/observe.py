"""Writes the configured observations of one environment into rows of the output arrays."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from nclone_env.game import NUM_ACTIONS
from nclone_env.jit import called_kernel, stream_bytes
from nclone_env.obs import (
    ENTITY_STATE,
    FREE_MOTION,
    GAME_STATE,
    NO_LATTICE,
    NO_QUERIES,
    ObservationSpec,
    words,
    write_entity_states,
    write_free_motion,
    write_game_state,
    write_graph,
    write_hazards,
    write_locals,
    write_progress,
    write_query,
)
from nclone_env.render import write_global_view, write_player_frame
from nclone_env.sim import MOVER, NINJA_RECORD, WorldArrays

_NOT_EXTRAS = frozenset({"game_state", "player_frame", "global_view", "action_mask", "action_outcomes"})


class ExtraArrays(NamedTuple):
    """The arrays of less common observations, as in ``ObservationArrays``; None in environments without any.

    The kernels are compiled separately for the two cases, so extras cost other environments neither bytes nor branches.

    Attributes:
        entity_states: (n, K, w) uint16, the words of 12 float32 or float16 (``obs.half``).
        entity_kinds: (n, K) uint8.
        entity_count: (n, 1) uint8.
        locals: (n, P, S, S) uint8, of P = 1 to 3 planes.
        free_motion: (n, 6, w) uint16, the words of 10 float32 or float16.
        graph_level: (n, 1) int32.
        graph_node: (n, 1) int32.
        graph_entities: (n, K) uint8.
        lattice: (L, 51, 89) int16, read-only, of ``level.routes.graph.Graphs``.
        queries: (N, Q) float64, one row per environment of the batch; answered by ``env.reachability`` after the step.
    """

    entity_states: np.ndarray
    entity_kinds: np.ndarray
    entity_count: np.ndarray
    locals: np.ndarray
    free_motion: np.ndarray
    graph_level: np.ndarray
    graph_node: np.ndarray
    graph_entities: np.ndarray
    lattice: np.ndarray
    queries: np.ndarray


class ObservationArrays(NamedTuple):
    """One array per observation, one row per environment; no rows for observations that are not configured.

    Attributes:
        game_state: (n, w) uint16, the words of 30 float32 or float16 (``obs.half``).
        player_frame: (n, S, S, 1) uint8.
        global_view: (n, H, W, 1) uint8.
        extras: ``ExtraArrays``, or None.
    """

    game_state: np.ndarray
    player_frame: np.ndarray
    global_view: np.ndarray
    extras: ExtraArrays | None = None


class FinalArrays(NamedTuple):
    """The last observations of the episodes that end in a step, one row each, as in ``env.arrays.final.FinalRows``.

    Attributes:
        observations: ``ObservationArrays`` of at least as many rows as episodes can end.
        used: (1,) int64, number of rows used.
        places: (n,) int32, the row of each environment whose episode ended.
        worlds: ``WorldArrays`` of n worlds for copies of those that ended; no rows where nothing reads them.
    """

    observations: ObservationArrays
    used: np.ndarray
    places: np.ndarray
    worlds: WorldArrays


_NO_WORLDS = WorldArrays(
    np.zeros(0, NINJA_RECORD), np.zeros((0, 0), np.uint8), np.zeros((0, 0), MOVER), np.zeros((0, 0, 2))
)
NO_FINAL_ROWS = np.zeros(1, np.int64), np.zeros(0, np.int32), _NO_WORLDS
"""``used``, ``places`` and ``worlds`` where no last observations are asked for."""


def no_observations(specs: Sequence[ObservationSpec], lattice: np.ndarray = NO_LATTICE) -> ObservationArrays:
    """Return observations without rows, of the types that those of a configuration have in kernels."""
    none = _no_observations(has_extras=not {spec.name for spec in specs} <= _NOT_EXTRAS)
    if none.extras is None or lattice is NO_LATTICE:
        return none
    return none._replace(extras=none.extras._replace(lattice=lattice))


@lru_cache(maxsize=2)  # environments share them
def _no_observations(has_extras: bool) -> ObservationArrays:
    extras = ExtraArrays(
        np.zeros((0, 0, len(ENTITY_STATE)), np.uint16),
        np.zeros((0, 0), np.uint8),
        np.zeros((0, 1), np.uint8),
        np.zeros((0, 1, 0, 0), np.uint8),
        np.zeros((0, NUM_ACTIONS, len(FREE_MOTION)), np.uint16),
        np.zeros((0, 1), np.int32),
        np.zeros((0, 1), np.int32),
        np.zeros((0, 0), np.uint8),
        NO_LATTICE,
        NO_QUERIES,
    )
    pictures = np.zeros((0, 0, 0, 1), np.uint8), np.zeros((0, 0, 0, 1), np.uint8)
    return ObservationArrays(np.zeros((0, len(GAME_STATE)), np.uint16), *pictures, extras if has_extras else None)


def kernel_array(name: str, array: np.ndarray) -> np.ndarray:
    """Return the array of an observation as kernels take it: vectors as words, ``locals`` with an axis of planes."""
    if array.dtype.kind == "f":
        return words(array)
    return array[:, np.newaxis] if name == "locals" and array.ndim == 3 else array


def kernel_view(
    buffers: Mapping[str, np.ndarray], empty: ObservationArrays, queries: np.ndarray = NO_QUERIES
) -> ObservationArrays:
    """Return observations as kernels take them; ``empty`` is of the same configuration, without rows.

    The tuples are built field by field: each ``_replace`` would leave a tuple in the interpreter's free list, up to
    128 KB in all.
    """
    state = kernel_array("game_state", buffers.get("game_state", empty.game_state))
    frame, view = buffers.get("player_frame", empty.player_frame), buffers.get("global_view", empty.global_view)
    none = empty.extras
    if none is None:
        return ObservationArrays(state, frame, view)
    extras = ExtraArrays(
        kernel_array("entity_states", buffers.get("entity_states", none.entity_states)),
        buffers.get("entity_kinds", none.entity_kinds),
        buffers.get("entity_count", none.entity_count),
        kernel_array("locals", buffers.get("locals", none.locals)),
        kernel_array("free_motion", buffers.get("free_motion", none.free_motion)),
        buffers.get("graph_level", none.graph_level),
        buffers.get("graph_node", none.graph_node),
        buffers.get("graph_entities", none.graph_entities),
        none.lattice,
        queries,
    )
    return ObservationArrays(state, frame, view, extras)


@called_kernel
def observe(arrays, index, row, worker, out):
    """Write a row of every array of ``out`` that has rows."""
    levels, worlds, pictures = arrays.levels, arrays.worlds, arrays.pictures
    if out.game_state.shape[0] > 0:
        write_game_state(levels, arrays.paths, worlds, index, arrays.settings[0], out.game_state[row])
    if out.player_frame.shape[0] > 0:
        canvas = arrays.canvas.player_frame
        picture = canvas[worker] if canvas.shape[0] > 0 else out.player_frame[row]
        write_player_frame(levels, worlds, index, pictures, picture)
        if canvas.shape[0] > 0:
            stream_bytes(out.player_frame[row], picture)
    if out.global_view.shape[0] > 0:
        canvas = arrays.canvas.global_view
        picture = canvas[worker] if canvas.shape[0] > 0 else out.global_view[row]
        write_global_view(levels, worlds, index, pictures, picture)
        if canvas.shape[0] > 0:
            stream_bytes(out.global_view[row], picture)
    write_extras(levels, arrays.paths, worlds, index, arrays.settings[0], row, out.extras)


@called_kernel
def write_extras(levels, paths, worlds, index, settings, row, extras):
    """Write one row of the arrays of ``extras`` that have rows; nothing if ``extras`` is None."""
    if extras is None:
        return
    if extras.entity_kinds.shape[0] > 0:
        states, kinds, count = extras.entity_states, extras.entity_kinds, extras.entity_count
        write_entity_states(levels, worlds, index, row, states, kinds, count)
    if extras.locals.shape[0] > 0:
        write_locals(levels, worlds, index, extras.locals[row, 0])
        if extras.locals.shape[1] > 1:
            write_hazards(levels, worlds, index, extras.locals[row, 1])
        if extras.locals.shape[1] > 2:
            write_progress(levels, paths, worlds, index, extras.locals[row, 2])
    if extras.free_motion.shape[0] > 0:
        write_free_motion(levels, paths, worlds, index, settings["outcome_frames"], extras.free_motion[row])
    if extras.graph_level.shape[0] > 0:
        level, node, entities = extras.graph_level, extras.graph_node, extras.graph_entities
        write_graph(levels, worlds, index, extras.lattice, row, level, node, entities)
    if extras.queries.shape[0] > 0:
        write_query(levels, worlds, index, extras.queries)
