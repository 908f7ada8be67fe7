"""Paths through a level: distances, what doors divide, graphs."""

from typing import TYPE_CHECKING

from nclone_env._faces import face

if TYPE_CHECKING:  # for other rooms, each imported on first use
    from nclone_env.level.level_set import Paths
    from nclone_env.level.routes.distance import (
        AREA,
        FIELD_SHAPE,
        PLANES,
        SPACING,
        TO_EXIT,
        TO_SWITCH,
        crosses,
        direction_by,
        direction_to,
        distance_at,
        follow,
        free_nodes,
        nearest_node,
        write_reach_fields,
    )
    from nclone_env.level.routes.graph import NO_NODE, Graphs, level_graphs
    from nclone_env.level.routes.guide import Guide, make_guide, paths_with_doors
    from nclone_env.level.routes.lattice import FAR, length_at

__all__, __getattr__, __dir__ = face(__name__)
