"""Paths through a level: distances, what doors divide, graphs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nclone_env._faces import face

if TYPE_CHECKING:  # for other rooms, each imported on first use
    from nclone_env.level.level_set import Paths as Paths
    from nclone_env.level.routes.distance import AREA as AREA
    from nclone_env.level.routes.distance import FIELD_SHAPE as FIELD_SHAPE
    from nclone_env.level.routes.distance import PLANES as PLANES
    from nclone_env.level.routes.distance import SPACING as SPACING
    from nclone_env.level.routes.distance import TO_EXIT as TO_EXIT
    from nclone_env.level.routes.distance import TO_SWITCH as TO_SWITCH
    from nclone_env.level.routes.distance import crosses as crosses
    from nclone_env.level.routes.distance import direction_by as direction_by
    from nclone_env.level.routes.distance import direction_to as direction_to
    from nclone_env.level.routes.distance import distance_at as distance_at
    from nclone_env.level.routes.distance import follow as follow
    from nclone_env.level.routes.distance import free_nodes as free_nodes
    from nclone_env.level.routes.distance import nearest_node as nearest_node
    from nclone_env.level.routes.distance import write_reach_fields as write_reach_fields
    from nclone_env.level.routes.graph import NO_NODE as NO_NODE
    from nclone_env.level.routes.graph import Graphs as Graphs
    from nclone_env.level.routes.graph import level_graphs as level_graphs
    from nclone_env.level.routes.guide import Guide as Guide
    from nclone_env.level.routes.guide import make_guide as make_guide
    from nclone_env.level.routes.guide import paths_with_doors as paths_with_doors
    from nclone_env.level.routes.lattice import FAR as FAR
    from nclone_env.level.routes.lattice import length_at as length_at

__all__, __getattr__, __dir__ = face(__name__)
