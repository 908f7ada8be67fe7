"""The memory profiler: collect a Measurements, compute Stats, write reports; or watch a block of one's own code."""

from typing import TYPE_CHECKING

from nclone_env._faces import face

if TYPE_CHECKING:  # the public names, each imported on first use
    from nclone_env.memory.flat import GrowthError as GrowthError
    from nclone_env.memory.flat import assert_flat as assert_flat
    from nclone_env.memory.flat import flat_profile as flat_profile
    from nclone_env.memory.watch import Watch as Watch
    from nclone_env.memory.watch import profile as profile

if TYPE_CHECKING:  # for other rooms
    from nclone_env.memory.explain.stats import Stats, copies, of_kept_results
    from nclone_env.memory.measure.measurements import Advice, OwnedNode
    from nclone_env.memory.measure.process import machine, resident_bytes
    from nclone_env.memory.measure.tree import MemoryNode, array_group, array_node, arrays_node, merged
    from nclone_env.memory.passenger import call
    from nclone_env.memory.passes import Subject, Target, estimate, measured
    from nclone_env.memory.show import comparison, write_report

__getattr__, __dir__ = face(__name__)
