"""Observations: the table that defines them, and their writers."""

from typing import TYPE_CHECKING

from nclone_env._faces import face

if TYPE_CHECKING:  # the public names, each imported on first use
    from nclone_env.obs.spec import GAME_STATE as GAME_STATE
    from nclone_env.obs.spec import Feature as Feature

if TYPE_CHECKING:  # for other rooms
    from nclone_env.obs.action_outcomes import (
        ENVIRONMENT,
        PROGRESS,
        SCRATCH_WORLDS,
        VALUES,
        ActionOutcomes,
        outcome_range,
    )
    from nclone_env.obs.entity_states import NO_LATTICE
    from nclone_env.obs.fields import Reachability
    from nclone_env.obs.game_state import open_exit_count, path_remaining
    from nclone_env.obs.half import words
    from nclone_env.obs.reachability import NO_QUERIES
    from nclone_env.obs.rows import ObservationArrays, kernel_array, kernel_view, no_observations, observe
    from nclone_env.obs.spec import (
        ObservationSpec,
        columns,
        frame_specs,
        observation_specs,
    )

__getattr__, __dir__ = face(__name__)
