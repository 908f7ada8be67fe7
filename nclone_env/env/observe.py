"""Writes the configured observations of one world into rows of the caller's arrays."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nclone_env._jit import kernel
from nclone_env.obs.game_state import write_game_state
from nclone_env.render.compose import write_global_view, write_player_frame


class ObservationArrays(NamedTuple):
    """One array for each kind of observation, with a row an environment; no rows where it is not asked for.

    Attributes:
        game_state: (n, 30) float32.
        player_frame: (n, S, S, 1) uint8.
        global_view: (n, H, W, 1) uint8.
    """

    game_state: np.ndarray
    player_frame: np.ndarray
    global_view: np.ndarray


NO_OBSERVATIONS = ObservationArrays(
    np.zeros((0, 30), np.float32), np.zeros((0, 0, 0, 1), np.uint8), np.zeros((0, 0, 0, 1), np.uint8)
)


@kernel
def observe(levels, fields, worlds, pictures, index, max_frames, out):
    """Write row ``index`` of every array of ``out`` that has rows.

    Args:
        levels: ``LevelArrays``.
        fields: (F, 51, 89) float32 distance fields.
        worlds: ``WorldArrays``.
        pictures: ``PictureArrays``.
        index: world and row.
        max_frames: frames after which an episode is truncated.
        out: ``ObservationArrays``.
    """
    if out.game_state.shape[0] > 0:
        write_game_state(levels, fields, worlds, index, max_frames, index, out.game_state)
    if out.player_frame.shape[0] > 0:
        write_player_frame(levels, worlds, index, pictures, out.player_frame[index])
    if out.global_view.shape[0] > 0:
        write_global_view(levels, worlds, index, pictures, out.global_view[index])
