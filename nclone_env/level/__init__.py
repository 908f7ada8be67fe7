"""Levels: file formats, compilation, packing, distance fields."""

from typing import TYPE_CHECKING

from nclone_env._faces import face

if TYPE_CHECKING:  # the public names, each imported on first use
    from nclone_env.level.build import build_level as build_level
    from nclone_env.level.build import build_room as build_room
    from nclone_env.level.build import hall_tiles as hall_tiles
    from nclone_env.level.build import mirrored as mirrored
    from nclone_env.level.level_set import pack as pack
    from nclone_env.level.solutions import format_inputs as format_inputs
    from nclone_env.level.solutions import known_solutions as known_solutions
    from nclone_env.level.solutions import parse_inputs as parse_inputs

if TYPE_CHECKING:  # for other rooms
    from nclone_env.level.build import everything, mirrored_inputs, mirrored_tiles
    from nclone_env.level.catalog import level_sets
    from nclone_env.level.compile import (
        ALL_EDGES,
        DOOR_CLOSED_AT_0,
        DOOR_EDGES,
        FIRST_HORIZONTAL,
        HORIZONTAL,
        LASER_FRAME,
        MINE_ROWS,
        NO_ENTITY,
        SOLID_EDGES,
        VERTICAL,
        WORD_EDGES,
        LevelArrays,
    )
    from nclone_env.level.formats.attract import AttractFile, PeerFile, is_attract, is_peer, read_attract, read_peer
    from nclone_env.level.formats.map_bytes import GAME_MODE_NAMES, GAME_MODES, LARGEST_MAP, read_map, write_map
    from nclone_env.level.formats.pack_text import write_pack
    from nclone_env.level.formats.reader import WRITERS, appearance, read_bytes, write_index
    from nclone_env.level.formats.text import TILES
    from nclone_env.level.level import (
        UNPUBLISHED,
        Finding,
        Level,
        RawLevel,
        count_exits,
        played_records,
        validate,
    )
    from nclone_env.level.level_set import (
        LevelSet,
        Paths,
        content_digest,
        level_library,
        shared_level_set,
    )
    from nclone_env.level.load import (
        LevelRef,
        LevelSource,
        OpenedPacks,
        distinct_names,
        levels_as_text,
        listed_names,
        load_level,
        load_levels,
        readable,
        resolve,
    )
    from nclone_env.level.routes.distance import (
        AREA,
        PLANES,
        TO_EXIT,
        TO_SWITCH,
        compile_kernels,
        crosses,
        free_nodes,
        write_reach_fields,
    )
    from nclone_env.level.routes.fields import (
        FIELD_ROW,
        FIELD_SHAPE,
        NO_CODE,
        NODES,
        SPACING,
        code_at,
        direction_to,
        distance_at,
        follow,
        length_of,
        nearest_node,
    )
    from nclone_env.level.routes.graph import NO_NODE, Graphs, level_graphs
    from nclone_env.level.routes.gravity import NO_FALL, rise_of
    from nclone_env.level.routes.guide import Guide, make_guide, paths_with_doors
    from nclone_env.level.routes.lattice import FAR, length_at
    from nclone_env.level.routes.traps import is_trapped
    from nclone_env.level.solutions import known_solutions_of
    from nclone_env.level.tiles import CONVEX, SOLID_SAMPLES, STRAIGHT

__getattr__, __dir__ = face(__name__)
