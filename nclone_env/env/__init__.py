"""The Gymnasium environments: observation, action, reward and the compiled step."""

from typing import TYPE_CHECKING

from nclone_env._faces import face

if TYPE_CHECKING:  # for other rooms, each imported on first use
    from nclone_env.env.arguments import check_seed
    from nclone_env.env.arrays.buffers import Buffers
    from nclone_env.env.arrays.final import reserve
    from nclone_env.env.compiled.passes import ObservationFunction, OwnWorld
    from nclone_env.env.compiled.records import DIED, OUTCOMES, PLAYING, TIMED_OUT, WON
    from nclone_env.env.compiled.starts import PackedStarts, pack_starts
    from nclone_env.env.compiled.step import KernelSteps, simulate_frames, step_all
    from nclone_env.env.compiled.step_arrays import playable_levels
    from nclone_env.env.create import compile_kernels, create_environment, create_vector_environment
    from nclone_env.env.cuda import NOT_ON_DEVICES, Device, NPlusPlusCudaVectorEnv, device_of
    from nclone_env.env.ids import ENVIRONMENT_ID, REGISTERED, register
    from nclone_env.env.phases import measure_phases
    from nclone_env.env.single import NPlusPlusEnv
    from nclone_env.env.spaces import flat_masks
    from nclone_env.env.threads import Workers
    from nclone_env.env.vector import NPlusPlusVectorEnv

__getattr__, __dir__ = face(__name__)
