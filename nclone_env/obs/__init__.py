"""Observations: the table that defines them, and their writers."""

from typing import TYPE_CHECKING

from nclone_env._faces import face

if TYPE_CHECKING:  # the public names, each imported on first use
    from nclone_env.obs.spec import GAME_STATE as GAME_STATE
    from nclone_env.obs.spec import Feature as Feature

if TYPE_CHECKING:  # for other rooms
    from nclone_env.obs.action_outcomes import (
        ENVIRONMENT,
        FRAME,
        PROGRESS,
        SCRATCH_WORLDS,
        TURN,
        VALUES,
        write_outcomes,
    )
    from nclone_env.obs.entity_states import NO_LATTICE, write_entity_states, write_graph
    from nclone_env.obs.free_motion import write_free_motion
    from nclone_env.obs.game_state import open_exit_count, path_remaining, write_game_state
    from nclone_env.obs.half import words
    from nclone_env.obs.locals import write_hazards, write_locals, write_progress
    from nclone_env.obs.reachability import (
        KEY,
        NO_QUERIES,
        PENDING,
        find_slot,
        key_bits,
        key_width,
        make_queries,
        write_query,
        write_reachability,
    )
    from nclone_env.obs.spec import (
        ENTITY_STATE,
        FREE_MOTION,
        REACHABILITY,
        ObservationSpec,
        columns,
        frame_specs,
        observation_specs,
    )

__all__, __getattr__, __dir__ = face(__name__)
