"""Numbers of the game, each with the section of the physics specification it comes from.

Physics 01 = world and ninja, physics 02 = entities. Decimal literals are exact to the printed digit:
several are deliberately one unit in the last place below the obvious fraction (physics 01, section 1).
"""

from __future__ import annotations

# World (physics 01, section 2.1), pixels and cells.
TILE_COLUMNS, TILE_ROWS = 42, 23
COLUMNS, ROWS = 44, 25  # with the ring of full blocks around the playable level
CELLS = COLUMNS * ROWS
CELL_SIZE = 24.0
HALF_CELL = 12.0
WORLD_WIDTH, WORLD_HEIGHT = 1056, 600
MAP_UNIT = 6.0  # pixels per unit of a coordinate byte
MAX_TILE = 37

# Ninja (physics 01, section 1), pixels and frames.
FALL_GRAVITY = 0.06666666666666665
JUMP_GRAVITY = 0.01111111111111111
GROUND_ACCELERATION = 0.06666666666666665
AIR_ACCELERATION = 0.04444444444444444
REGULAR_DRAG = 0.9933221725495059  # 0.99 ** (2 / 3)
SLOW_DRAG = 0.8617738760127536  # 0.80 ** (2 / 3)
GROUND_FRICTION = 0.9459290248857720  # 0.92 ** (2 / 3)
SLOW_GROUND_FRICTION = 0.8617738760127536  # 0.80 ** (2 / 3)
WALL_FRICTION = 0.9113380468927672  # 0.87 ** (2 / 3)
MAX_HORIZONTAL_SPEED = 3.333333333333333
MAX_JUMP_DURATION = 45
MAX_IMPACT = 6.0
RADIUS = 10.0
SWEEP_RADIUS = RADIUS * 0.5
WALL_REACH = RADIUS + 0.1
ARC_RADIUS = 24.0

FRAMES_PER_SECOND = 60

# Ninja states (physics 01, section 5).
IMMOBILE, RUNNING, SLIDING, JUMPING, FALLING, WALL_SLIDING, DEAD, DYING, CELEBRATING, DISABLED = range(10)

# Entity types (physics 02, section 3).
NINJA, MINE, GOLD, EXIT, EXIT_SWITCH = range(5)
REGULAR_DOOR, LOCKED_DOOR, LOCKED_DOOR_SWITCH, TRAP_DOOR, TRAP_DOOR_SWITCH, LAUNCH_PAD, ONE_WAY = range(5, 12)
ZAP_DRONE, FLOOR_GUARD, BOUNCE_BLOCK, THWUMP, TOGGLE_MINE = 14, 16, 17, 20, 21
BOOST_PAD, DEATH_BALL, MINI_DRONE, SHOVE_THWUMP = 24, 25, 26, 28
ROCKET_TURRET, GAUSS_TURRET, LASER_TURRET = 18, 19, 23
ENTITY_NAMES = (
    "ninja",
    "mine",
    "gold",
    "exit",
    "exit_switch",
    "regular_door",
    "locked_door",
    "locked_door_switch",
    "trap_door",
    "trap_door_switch",
    "launch_pad",
    "one_way",
    "chaingun_drone",
    "laser_drone",
    "zap_drone",
    "chaser_drone",
    "floor_guard",
    "bounce_block",
    "rocket_turret",
    "gauss_turret",
    "thwump",
    "toggle_mine",
    "evil_ninja",
    "laser_turret",
    "boost_pad",
    "death_ball",
    "mini_drone",
    "unknown_27",
    "shove_thwump",
)

# Entity radii (physics 02, section 6), pixels.
MINE_RADII = (4.0, 3.5, 4.5)  # armed, safe, stepped on
GOLD_RADIUS = 6.0
EXIT_RADIUS = 12.0
SWITCH_RADIUS = 6.0

# Unit vectors of the eight orientations, clockwise from right (physics 02, section 4.6).
DIAGONAL = 0.7071067811865476
FACING_X = (1.0, DIAGONAL, 0.0, -DIAGONAL, -1.0, -DIAGONAL, 0.0, DIAGONAL)
FACING_Y = (0.0, DIAGONAL, 1.0, DIAGONAL, 0.0, -DIAGONAL, -1.0, -DIAGONAL)

# Input byte (physics 01, section 14.4).
INPUT_JUMP, INPUT_RIGHT, INPUT_LEFT, INPUT_SUICIDE = 1, 2, 4, 8
