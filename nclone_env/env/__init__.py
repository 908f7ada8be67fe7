"""The Gymnasium environments: observation, action, reward and the compiled step."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nclone_env._faces import face

if TYPE_CHECKING:  # for other rooms, each imported on first use
    from nclone_env.env.actions import check_actions as check_actions
    from nclone_env.env.actions import flat_masks as flat_masks
    from nclone_env.env.arguments import check_seed as check_seed
    from nclone_env.env.arrays.buffers import Buffers as Buffers
    from nclone_env.env.arrays.buffers import make_buffers as make_buffers
    from nclone_env.env.arrays.final import FinalPool as FinalPool
    from nclone_env.env.arrays.final import reserve as reserve
    from nclone_env.env.autoreset import AUTORESET_CODES as AUTORESET_CODES
    from nclone_env.env.batch import Batch as Batch
    from nclone_env.env.compiled.action_mask import ActionMasks as ActionMasks
    from nclone_env.env.compiled.action_outcomes import ActionOutcomes as ActionOutcomes
    from nclone_env.env.compiled.passes import Call as Call
    from nclone_env.env.compiled.passes import Pass as Pass
    from nclone_env.env.compiled.passes import StepPass as StepPass
    from nclone_env.env.compiled.records import DISABLED as DISABLED
    from nclone_env.env.compiled.records import OUTCOMES as OUTCOMES
    from nclone_env.env.compiled.records import SAME_STEP as SAME_STEP
    from nclone_env.env.compiled.records import WON as WON
    from nclone_env.env.compiled.step import play_step as play_step
    from nclone_env.env.compiled.step import simulate_frames as simulate_frames
    from nclone_env.env.create import create_environment as create_environment
    from nclone_env.env.create import create_vector_environment as create_vector_environment
    from nclone_env.env.ids import ENVIRONMENT_ID as ENVIRONMENT_ID
    from nclone_env.env.ids import register as register
    from nclone_env.env.playable import playable_levels as playable_levels
    from nclone_env.env.reachability.answer import Reachability as Reachability
    from nclone_env.env.single import NPlusPlusEnv as NPlusPlusEnv
    from nclone_env.env.threads import CALLING_THREAD as CALLING_THREAD
    from nclone_env.env.threads import Job as Job
    from nclone_env.env.threads import Workers as Workers
    from nclone_env.env.vector import NPlusPlusVectorEnv as NPlusPlusVectorEnv

__all__, __getattr__, __dir__ = face(__name__)
