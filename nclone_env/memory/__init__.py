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
    from nclone_env.memory.measurements import FLOORS, FREE_LISTS, Advice, OwnedNode, PhaseTime, ProfileSettings
    from nclone_env.memory.owners import chosen, copies, folded, of_kept_results, owned_nodes, owner_rows
    from nclone_env.memory.passes import check_settings, collect
    from nclone_env.memory.process import resident_bytes
    from nclone_env.memory.report import (
        compare,
        comparison_text,
        different_settings,
        load_profile,
        page_template,
        write_reports,
    )
    from nclone_env.memory.section import Section, text_of
    from nclone_env.memory.sections import summary
    from nclone_env.memory.sizes import Subject, Target, estimated
    from nclone_env.memory.stats import Stats, compute_stats
    from nclone_env.memory.tree import MemoryNode, array_group, array_node, arrays_node, is_mapped, merged

__all__, __getattr__, __dir__ = face(__name__)
