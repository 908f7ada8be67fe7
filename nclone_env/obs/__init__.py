"""Observations: the table that defines them, and their writers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nclone_env._faces import face

if TYPE_CHECKING:  # the public names, each imported on first use
    from nclone_env.obs.spec import GAME_STATE as GAME_STATE
    from nclone_env.obs.spec import Feature as Feature

if TYPE_CHECKING:  # for other rooms
    from nclone_env.obs.action_outcomes import ENVIRONMENT as ENVIRONMENT
    from nclone_env.obs.action_outcomes import FRAME as FRAME
    from nclone_env.obs.action_outcomes import PROGRESS as PROGRESS
    from nclone_env.obs.action_outcomes import SCRATCH_WORLDS as SCRATCH_WORLDS
    from nclone_env.obs.action_outcomes import TURN as TURN
    from nclone_env.obs.action_outcomes import VALUES as VALUES
    from nclone_env.obs.action_outcomes import write_outcomes as write_outcomes
    from nclone_env.obs.entity_states import write_entity_states as write_entity_states
    from nclone_env.obs.game_state import write_game_state as write_game_state
    from nclone_env.obs.graph import NO_LATTICE as NO_LATTICE
    from nclone_env.obs.graph import write_graph as write_graph
    from nclone_env.obs.half import words as words
    from nclone_env.obs.locals import write_hazards as write_hazards
    from nclone_env.obs.locals import write_locals as write_locals
    from nclone_env.obs.locals import write_progress as write_progress
    from nclone_env.obs.objective import open_exit_count as open_exit_count
    from nclone_env.obs.objective import path_remaining as path_remaining
    from nclone_env.obs.reachability import KEY as KEY
    from nclone_env.obs.reachability import NO_QUERIES as NO_QUERIES
    from nclone_env.obs.reachability import PENDING as PENDING
    from nclone_env.obs.reachability import find_slot as find_slot
    from nclone_env.obs.reachability import key_bits as key_bits
    from nclone_env.obs.reachability import key_width as key_width
    from nclone_env.obs.reachability import make_queries as make_queries
    from nclone_env.obs.reachability import write_query as write_query
    from nclone_env.obs.reachability import write_reachability as write_reachability
    from nclone_env.obs.spec import ENTITY_STATE as ENTITY_STATE
    from nclone_env.obs.spec import REACHABILITY as REACHABILITY
    from nclone_env.obs.spec import ObservationSpec as ObservationSpec
    from nclone_env.obs.spec import columns as columns
    from nclone_env.obs.spec import frame_specs as frame_specs
    from nclone_env.obs.spec import observation_specs as observation_specs

__all__, __getattr__, __dir__ = face(__name__)
