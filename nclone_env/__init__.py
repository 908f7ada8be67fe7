"""N++ as a bit-exact, memory-lean Gymnasium environment for reinforcement learning.

Importing the package registers ``nclone/NPlusPlus-v0`` and its variants with Gymnasium, at once if that is imported,
otherwise at the end of its import. Everything else is imported when a public name is first used: a program that
profiles its memory imports neither Gymnasium nor Numba. Kernels are compiled on first use, or ahead of time by
``nclone-env warmup``.
"""

from typing import TYPE_CHECKING, Any

from nclone_env._faces import face
from nclone_env._version import __version__ as __version__
from nclone_env.env import register

if TYPE_CHECKING:  # the public names, each imported on first use
    from nclone_env import train as train
    from nclone_env.config import EnvironmentConfig as EnvironmentConfig
    from nclone_env.config import ObservationConfig as ObservationConfig
    from nclone_env.config import RenderConfig as RenderConfig
    from nclone_env.config import RewardConfig as RewardConfig
    from nclone_env.env import NPlusPlusEnv as NPlusPlusEnv
    from nclone_env.env import NPlusPlusVectorEnv as NPlusPlusVectorEnv
    from nclone_env.env import ObservationFunction as ObservationFunction
    from nclone_env.env import create_environment as create_environment
    from nclone_env.env import create_vector_environment as create_vector_environment
    from nclone_env.errors import NcloneError as NcloneError
    from nclone_env.game import Action as Action
    from nclone_env.level import Level as Level
    from nclone_env.level import level_library as level_library
    from nclone_env.level import load_level as load_level
    from nclone_env.memory import MemoryNode as MemoryNode
    from nclone_env.plan import solve as solve
    from nclone_env.sim import Trajectory as Trajectory
    from nclone_env.sim import simulate as simulate
    from nclone_env.train import Policy as Policy
    from nclone_env.train import TrainConfig as TrainConfig
    from nclone_env.train import load_policy as load_policy

_load, __dir__ = face(__name__)


def __getattr__(name: str) -> Any:
    """Import a public name on its first use; answer an unknown one with the name that was meant."""
    if name in __dir__() or name[0] == "_":
        return _load(name)
    from nclone_env._origin import renamed
    from nclone_env.errors import did_you_mean

    if hint := renamed(name):  # no AttributeError: ``from nclone_env import name`` would drop its message
        raise ImportError(f"cannot import name {name!r} from {__name__!r}{hint}", name=name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}{did_you_mean(name, __dir__())}")


register()
