"""Levels: file formats, compilation, packing, distance fields."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nclone_env._faces import face

if TYPE_CHECKING:  # the public names, each imported on first use
    from nclone_env.level.build import build_level as build_level
    from nclone_env.level.build import build_room as build_room
    from nclone_env.level.build import hall_tiles as hall_tiles
    from nclone_env.level.level_set import pack as pack
    from nclone_env.level.mirror import mirrored as mirrored
    from nclone_env.level.solutions import format_inputs as format_inputs
    from nclone_env.level.solutions import known_solutions as known_solutions
    from nclone_env.level.solutions import parse_inputs as parse_inputs

if TYPE_CHECKING:  # for other rooms
    from nclone_env.level.array_cache import Arrays as Arrays
    from nclone_env.level.array_cache import Layout as Layout
    from nclone_env.level.array_cache import cached_arrays as cached_arrays
    from nclone_env.level.catalog import level_sets as level_sets
    from nclone_env.level.compile import compile_level as compile_level
    from nclone_env.level.level import Level as Level
    from nclone_env.level.level_set import LevelArrays as LevelArrays
    from nclone_env.level.level_set import LevelSet as LevelSet
    from nclone_env.level.level_set import content_digest as content_digest
    from nclone_env.level.library import level_library as level_library
    from nclone_env.level.library import shared_level_set as shared_level_set
    from nclone_env.level.load import LevelSource as LevelSource
    from nclone_env.level.load import levels_as_text as levels_as_text
    from nclone_env.level.load import load_level as load_level
    from nclone_env.level.load import load_levels as load_levels
    from nclone_env.level.load import readable as readable
    from nclone_env.level.mirror import mirrored_inputs as mirrored_inputs
    from nclone_env.level.mirror import mirrored_tiles as mirrored_tiles
    from nclone_env.level.raw import UNPUBLISHED as UNPUBLISHED
    from nclone_env.level.raw import RawLevel as RawLevel
    from nclone_env.level.records import MAX_RECORDS as MAX_RECORDS
    from nclone_env.level.records import count_exits as count_exits
    from nclone_env.level.records import played_records as played_records
    from nclone_env.level.reference import LevelRef as LevelRef
    from nclone_env.level.reference import OpenedPacks as OpenedPacks
    from nclone_env.level.reference import listed_names as listed_names
    from nclone_env.level.reference import resolve as resolve
    from nclone_env.level.scenes import everything as everything
    from nclone_env.level.segments import DOOR_CLOSED_AT_0 as DOOR_CLOSED_AT_0
    from nclone_env.level.segments import EDGE_DOOR as EDGE_DOOR
    from nclone_env.level.segments import EDGE_VALUE as EDGE_VALUE
    from nclone_env.level.segments import HORIZONTAL as HORIZONTAL
    from nclone_env.level.segments import VERTICAL as VERTICAL
    from nclone_env.level.solutions import known_solutions_of as known_solutions_of
    from nclone_env.level.tiles import CONVEX as CONVEX
    from nclone_env.level.tiles import SOLID_SAMPLES as SOLID_SAMPLES
    from nclone_env.level.tiles import STRAIGHT as STRAIGHT
    from nclone_env.level.validation import Finding as Finding
    from nclone_env.level.validation import validate as validate

__all__, __getattr__, __dir__ = face(__name__)
