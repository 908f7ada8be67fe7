"""The memory profiler: collect a Measurements, compute Stats, write reports; or watch a block of one's own code."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nclone_env._faces import face

if TYPE_CHECKING:  # the public names, each imported on first use
    from nclone_env.memory.flat import GrowthError as GrowthError
    from nclone_env.memory.flat import assert_flat as assert_flat
    from nclone_env.memory.flat import flat_profile as flat_profile
    from nclone_env.memory.watch import Watch as Watch
    from nclone_env.memory.watch import profile as profile

if TYPE_CHECKING:  # for other rooms
    from nclone_env.memory.advice import chosen as chosen
    from nclone_env.memory.advice import copies as copies
    from nclone_env.memory.advice import of_kept_results as of_kept_results
    from nclone_env.memory.answer import summary as summary
    from nclone_env.memory.changes import compare as compare
    from nclone_env.memory.changes import comparison_text as comparison_text
    from nclone_env.memory.changes import different_settings as different_settings
    from nclone_env.memory.changes import load_profile as load_profile
    from nclone_env.memory.growth import FLOORS as FLOORS
    from nclone_env.memory.growth import FREE_LISTS as FREE_LISTS
    from nclone_env.memory.measurements import Advice as Advice
    from nclone_env.memory.measurements import OwnedNode as OwnedNode
    from nclone_env.memory.measurements import PhaseTime as PhaseTime
    from nclone_env.memory.measurements import ProfileSettings as ProfileSettings
    from nclone_env.memory.owners import folded as folded
    from nclone_env.memory.owners import owned_nodes as owned_nodes
    from nclone_env.memory.owners import owner_rows as owner_rows
    from nclone_env.memory.page import page_template as page_template
    from nclone_env.memory.passes import check_settings as check_settings
    from nclone_env.memory.passes import collect as collect
    from nclone_env.memory.plan import estimated as estimated
    from nclone_env.memory.plan import extrapolated as extrapolated
    from nclone_env.memory.process import resident_bytes as resident_bytes
    from nclone_env.memory.report import write_reports as write_reports
    from nclone_env.memory.section import Section as Section
    from nclone_env.memory.section import text_of as text_of
    from nclone_env.memory.stats import compute_stats as compute_stats
    from nclone_env.memory.subject import Subject as Subject
    from nclone_env.memory.subject import Target as Target

__all__, __getattr__, __dir__ = face(__name__)
