"""The simulator: the physics of N++ as compiled kernels over batches of worlds."""

from typing import TYPE_CHECKING

from nclone_env._faces import face

if TYPE_CHECKING:  # for other rooms, each imported on first use
    from nclone_env.sim.dispatch import beam_of, describe, radius_of
    from nclone_env.sim.entities.drone import frames_to_node, next_leg
    from nclone_env.sim.entities.fixed import boost, is_closed, push_one_way, touch_launch_pad
    from nclone_env.sim.entities.laser.turret import beam_orientation
    from nclone_env.sim.entities.turrets import is_flying
    from nclone_env.sim.frame import start, tick
    from nclone_env.sim.geometry import discs_overlap, greater, lesser, square_penetration
    from nclone_env.sim.keys import KeyParts, cell_key, hash_future, key_parts, square
    from nclone_env.sim.ninja import CONTACT_SLOTS, meets, think
    from nclone_env.sim.ninja_move import integrate
    from nclone_env.sim.pace import Pace
    from nclone_env.sim.plausible import checked_world, read_world, trail_length
    from nclone_env.sim.query import cell_of, closest_point, first_near, mines_of, place_of, sweep_tiles
    from nclone_env.sim.session import MOST_ENTRIES, Frames, Session, check_inputs, renumber_entries
    from nclone_env.sim.sight import NO_BEAM
    from nclone_env.sim.state import (
        FIRST,
        MOVER,
        NINJA_RECORD,
        RANDOM_BITS,
        World,
        copy_mover,
        copy_ninja,
        copy_world,
        draw,
        equal_worlds,
        expected_bytes,
        gather_worlds,
        hash_ninja,
        hash_world,
        make_growing_worlds,
        make_worlds,
        mark_of,
        mix,
        place_world,
        random_bits,
        splitmix,
        world_at,
        worlds_of,
    )
    from nclone_env.sim.store import (
        NO_TRAIL,
        SETTLED,
        UNSETTLED,
        WorldArrays,
        fit_world,
        gains_space,
        lacks_space,
        mover_of,
        state_of,
        states_of,
        store_of,
        trail_count,
        unsettle,
        with_space,
    )
    from nclone_env.sim.trajectory import Trajectory, compile_kernels, simulate, slow_frames_per_second

__getattr__, __dir__ = face(__name__)
