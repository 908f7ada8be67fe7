"""Writes the configured observations of one environment into rows of the output arrays.

The arrays, their stand-ins and views follow from the specs (``obs.spec``); a new observation is a call in
:func:`write_extras`.
"""

from collections import namedtuple
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from nclone_env.config import OBSERVATION_NAMES, EnvironmentConfig
from nclone_env.jit import called_kernel, stream_bytes
from nclone_env.obs.entity_states import NO_LATTICE, write_entity_states, write_graph
from nclone_env.obs.free_motion import write_free_motion
from nclone_env.obs.game_state import write_game_state
from nclone_env.obs.half import words
from nclone_env.obs.locals import write_planes
from nclone_env.obs.reachability import NO_QUERIES, write_query
from nclone_env.obs.spec import ObservationSpec, frame_specs
from nclone_env.render import write_global_view, write_player_frame

_SPECS = {spec.name: spec for spec in frame_specs(EnvironmentConfig(observations=OBSERVATION_NAMES))}
_COMMON = ("game_state", "player_frame", "global_view")
_AFTER_THE_STEP = ("action_mask", "action_outcomes", "reachability")  # written by passes of their own
_EXTRAS = tuple(name for name in _SPECS if name not in (*_COMMON, *_AFTER_THE_STEP))

ExtraArrays: Any = namedtuple("ExtraArrays", (*_EXTRAS, "lattice", "queries"))  # type: ignore[misc]
ExtraArrays.__doc__ = """The arrays of less common observations, as in ``ObservationArrays``; None if there are none.

The kernels are compiled separately for the two cases, so extras cost other environments neither bytes nor branches.
Beside the arrays of ``obs.spec`` by name, with ``locals`` as (n, P, S, S) of P = 1 to 3 planes:

Attributes:
    lattice: (L, 51, 89) int16, read-only, of ``level.routes.graph.Graphs``.
    queries: (N, Q) float64, one row per environment of the batch; answered by ``obs.fields`` after the step.
"""


class ObservationArrays(NamedTuple):
    """One array per observation, one row per environment; no rows for observations that are not configured.

    Vectors are their words (``obs.half``): kernels write them by ``write_vector``.

    Attributes:
        game_state: (n, w) uint16, the words of 30 float32 or float16.
        player_frame: (n, S, S, 1) uint8.
        global_view: (n, H, W, 1) uint8.
        extras: ``ExtraArrays``, or None.
    """

    game_state: np.ndarray
    player_frame: np.ndarray
    global_view: np.ndarray
    extras: Any = None


def no_observations(specs: Sequence[ObservationSpec], lattice: np.ndarray = NO_LATTICE) -> ObservationArrays:
    """Return observations without rows, of the types that those of a configuration have in kernels."""
    names = {spec.name for spec in specs}
    none = _no_observations(has_extras="reachability" in names or not names.isdisjoint(_EXTRAS))
    if none.extras is None or lattice is NO_LATTICE:
        return none
    return none._replace(extras=none.extras._replace(lattice=lattice))


@lru_cache(maxsize=2)  # environments share them
def _no_observations(has_extras: bool) -> ObservationArrays:
    none = {name: kernel_array(name, np.zeros((0, *spec.shape), spec.dtype)) for name, spec in _SPECS.items()}
    extras = ExtraArrays._make([*(none[name] for name in _EXTRAS), NO_LATTICE, NO_QUERIES]) if has_extras else None
    return ObservationArrays._make([*(none[name] for name in _COMMON), extras])


def kernel_array(name: str, array: np.ndarray) -> np.ndarray:
    """Return the array of an observation as kernels take it: vectors as words, ``locals`` with an axis of planes."""
    if array.dtype.kind == "f":
        return words(array)
    return array[:, np.newaxis] if name == "locals" and array.ndim == 3 else array


def kernel_view(
    buffers: Mapping[str, np.ndarray], empty: ObservationArrays, queries: np.ndarray = NO_QUERIES
) -> ObservationArrays:
    """Return observations as kernels take them; ``empty`` is of the same configuration, without rows.

    The tuples are built of lists: those of generators and ``_replace`` would stay in the interpreter's free lists, up
    to 128 KB in all.
    """
    common, none = [_viewed(name, buffers, empty) for name in _COMMON], empty.extras
    if none is None:
        return ObservationArrays._make([*common, None])
    extras = [_viewed(name, buffers, none) for name in _EXTRAS]
    return ObservationArrays._make([*common, ExtraArrays._make([*extras, none.lattice, queries])])


def _viewed(name: str, buffers: Mapping[str, np.ndarray], empty: Any) -> np.ndarray:
    return kernel_array(name, buffers[name]) if name in buffers else getattr(empty, name)


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
        write_planes(levels, paths, worlds, index, extras.locals[row])
    if extras.free_motion.shape[0] > 0:
        write_free_motion(levels, paths, worlds, index, settings["outcome_frames"], extras.free_motion[row])
    if extras.graph_level.shape[0] > 0:
        level, node, entities = extras.graph_level, extras.graph_node, extras.graph_entities
        write_graph(levels, worlds, index, extras.lattice, row, level, node, entities)
    if extras.queries.shape[0] > 0:
        write_query(levels, worlds, index, extras.queries)
