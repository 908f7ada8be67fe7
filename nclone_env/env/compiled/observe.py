"""Writes the configured observations of one world into rows of the caller's arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from nclone_env.jit import called_kernel, kernel
from nclone_env.memory_tree import MemoryNode, array_group
from nclone_env.obs.entity_states import write_entity_states
from nclone_env.obs.game_state import write_game_state
from nclone_env.obs.graph import NO_LATTICE, write_graph
from nclone_env.obs.half import round_table, round_vector
from nclone_env.obs.locals import write_locals
from nclone_env.obs.reachability import NO_QUERIES, note_query
from nclone_env.obs.spec import ENTITY_STATE, GAME_STATE, ObservationSpec
from nclone_env.render.compose import write_global_view, write_player_frame

_ELSEWHERE = frozenset({"game_state", "player_frame", "global_view", "action_mask"})  # no extras, see there
_HALF = np.dtype(np.float16)


class Scratch(NamedTuple):
    """What threads write on the way to an observation; arrays without rows where it is not needed.

    Attributes:
        game_state: (seats, 30) float32; vectors before they are rounded to float16.
        entity_states: (seats, K, 12) float32.
    """

    game_state: np.ndarray
    entity_states: np.ndarray

    def memory(self) -> MemoryNode:
        """Return the bytes of the arrays."""
        return array_group("scratch of observations", self._asdict(), shared=False)


class ExtraArrays(NamedTuple):
    """The arrays of what few ask for, as in ``ObservationArrays``; environments without any have None instead.

    The kernels are compiled a second time for those that have, so that nobody else pays a byte or a branch.

    Attributes:
        half_game_state: (n, 30) uint16, bits of float16.
        entity_states: (n, K, 12) float32; the rows of the scratch if they are rounded to float16 afterwards.
        half_entity_states: (n, K, 12) uint16, bits of float16.
        entity_kinds: (n, K) uint8.
        entity_count: (n, 1) uint8.
        locals: (n, S, S) uint8.
        graph_level: (n, 1) int32.
        graph_node: (n, 1) int32.
        graph_entities: (n, K) uint8.
        lattice: (L, 51, 89) int16, read-only, of ``level.graph.Graphs``.
        queries: (N, Q) float64, a row an environment of the batch: what ``env.reachability`` answers after the step.
    """

    half_game_state: np.ndarray
    entity_states: np.ndarray
    half_entity_states: np.ndarray
    entity_kinds: np.ndarray
    entity_count: np.ndarray
    locals: np.ndarray
    graph_level: np.ndarray
    graph_node: np.ndarray
    graph_entities: np.ndarray
    lattice: np.ndarray
    queries: np.ndarray


class ObservationArrays(NamedTuple):
    """One array for each kind of observation, with a row an environment; no rows where it is not asked for.

    Attributes:
        game_state: (n, 30) float32; the rows of the scratch if they are rounded to float16 afterwards.
        player_frame: (n, S, S, 1) uint8.
        global_view: (n, H, W, 1) uint8.
        extras: ``ExtraArrays``, or None.
    """

    game_state: np.ndarray
    player_frame: np.ndarray
    global_view: np.ndarray
    extras: ExtraArrays | None = None


NO_OBSERVATIONS = ObservationArrays(
    np.zeros((0, len(GAME_STATE)), np.float32), np.zeros((0, 0, 0, 1), np.uint8), np.zeros((0, 0, 0, 1), np.uint8)
)
_NO_EXTRAS: dict[str, np.ndarray] = {
    "half_game_state": np.zeros((0, len(GAME_STATE)), np.uint16),
    "entity_states": np.zeros((0, 0, len(ENTITY_STATE)), np.float32),
    "half_entity_states": np.zeros((0, 0, len(ENTITY_STATE)), np.uint16),
    "entity_kinds": np.zeros((0, 0), np.uint8),
    "entity_count": np.zeros((0, 1), np.uint8),
    "locals": np.zeros((0, 0, 0), np.uint8),
    "graph_level": np.zeros((0, 1), np.int32),
    "graph_node": np.zeros((0, 1), np.int32),
    "graph_entities": np.zeros((0, 0), np.uint8),
}


def make_scratch(specs: Sequence[ObservationSpec], seats: int) -> Scratch | None:
    """Return the scratch that the writers of some arrays need, None if none of them is an extra.

    Args:
        specs: the arrays of one moment.
        seats: number of places from which threads may observe at the same time.
    """
    rounded = [spec for spec in specs if spec.dtype == _HALF and spec.name != "reachability"]
    if not rounded and {spec.name for spec in specs} <= _ELSEWHERE:
        return None
    rows = {spec.name: np.zeros((seats, *spec.shape), np.float32) for spec in rounded}
    return Scratch(
        rows.get("game_state", NO_OBSERVATIONS.game_state),
        rows.get("entity_states", _NO_EXTRAS["entity_states"]),
    )


def kernel_view(
    buffers: Mapping[str, np.ndarray],
    scratch: Scratch | None = None,
    queries: np.ndarray = NO_QUERIES,
    lattice: np.ndarray = NO_LATTICE,
) -> ObservationArrays:
    """Return observations as kernels take them: float16 as its bits.

    Spelled out, because ``_replace`` leaves a tuple in the interpreter's free list at every call, up to 128 KB.

    Args:
        buffers: arrays by name.
        scratch: of environments with extras.
        queries: of environments with ``reachability``.
        lattice: of environments with ``graph``.
    """
    empty = NO_OBSERVATIONS
    state = buffers.get("game_state", empty.game_state)
    frame, view = buffers.get("player_frame", empty.player_frame), buffers.get("global_view", empty.global_view)
    if scratch is None:
        return ObservationArrays(state, frame, view)
    half_state, half_entities = _NO_EXTRAS["half_game_state"], _NO_EXTRAS["half_entity_states"]
    if state.dtype == _HALF:
        state, half_state = scratch.game_state, state.view(np.uint16)
    entities = buffers.get("entity_states", _NO_EXTRAS["entity_states"])
    if entities.dtype == _HALF:
        entities, half_entities = scratch.entity_states, entities.view(np.uint16)
    extras = ExtraArrays(
        half_state,
        entities,
        half_entities,
        buffers.get("entity_kinds", _NO_EXTRAS["entity_kinds"]),
        buffers.get("entity_count", _NO_EXTRAS["entity_count"]),
        buffers.get("locals", _NO_EXTRAS["locals"]),
        buffers.get("graph_level", _NO_EXTRAS["graph_level"]),
        buffers.get("graph_node", _NO_EXTRAS["graph_node"]),
        buffers.get("graph_entities", _NO_EXTRAS["graph_entities"]),
        lattice,
        queries,
    )
    return ObservationArrays(state, frame, view, extras)


@called_kernel
def observe(levels, fields, worlds, pictures, index, max_frames, row, seat, out):
    """Write a row of every array of ``out`` that has rows.

    Args:
        levels: ``LevelArrays``.
        fields: (F, 51, 89) float32 distance fields.
        worlds: ``WorldArrays``.
        pictures: ``PictureArrays``.
        index: world.
        max_frames: frames after which an episode is truncated.
        row: row to write.
        seat: row of the scratch to use.
        out: ``ObservationArrays``.
    """
    if out.game_state.shape[0] > 0:
        place = vector_row(out.extras, row, seat)
        write_game_state(levels, fields, worlds, index, max_frames, place, out.game_state)
    if out.player_frame.shape[0] > 0:
        write_player_frame(levels, worlds, index, pictures, out.player_frame[row])
    if out.global_view.shape[0] > 0:
        write_global_view(levels, worlds, index, pictures, out.global_view[row])
    write_extras(levels, worlds, index, row, seat, out.game_state, out.extras)


@kernel
def vector_row(extras, row, seat):
    """Return the row that float32 vectors are written to: that of the scratch if they are rounded afterwards."""
    if extras is None:
        return row
    if extras.half_game_state.shape[0] > 0 or extras.half_entity_states.shape[0] > 0:
        return seat
    return row


@called_kernel
def write_extras(levels, worlds, index, row, seat, game_state, extras):
    """Write a row of the arrays of ``extras`` that have rows; nothing if it is None."""
    if extras is None:
        return
    place = vector_row(extras, row, seat)
    if extras.half_game_state.shape[0] > 0:
        round_vector(game_state, place, extras.half_game_state, row)
    if extras.entity_kinds.shape[0] > 0:
        kinds, count = extras.entity_kinds, extras.entity_count
        write_entity_states(levels, worlds, index, place, extras.entity_states, row, kinds, count)
    if extras.half_entity_states.shape[0] > 0:
        round_table(extras.entity_states, place, extras.half_entity_states, row)
    if extras.locals.shape[0] > 0:
        write_locals(levels, worlds, index, extras.locals[row])
    if extras.graph_level.shape[0] > 0:
        level, node, entities = extras.graph_level, extras.graph_node, extras.graph_entities
        write_graph(levels, worlds, index, extras.lattice, row, level, node, entities)
    if extras.queries.shape[0] > 0:
        note_query(levels, worlds, index, extras.queries)
