"""Numbers of the game, each with the section of the physics specification it comes from.

Physics 01 covers the world and the ninja, physics 02 the entities; the kinds of entities have a table of their own in
``kinds``. Decimal literals are exact to the printed digit: several are deliberately one unit in the last place below
the obvious fraction (physics 01, section 1).
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

EVIL_DELAY = 120  # frames from one evil ninja to the next (physics 03, section 12)

# Unit vectors of the eight orientations, clockwise from right (physics 02, section 4.6).
DIAGONAL = 0.7071067811865476
FACING_X = (1.0, DIAGONAL, 0.0, -DIAGONAL, -1.0, -DIAGONAL, 0.0, DIAGONAL)
FACING_Y = (0.0, DIAGONAL, 1.0, DIAGONAL, 0.0, -DIAGONAL, -1.0, -DIAGONAL)

# Input byte (physics 01, section 14.4).
INPUT_JUMP, INPUT_RIGHT, INPUT_LEFT, INPUT_SUICIDE = 1, 2, 4, 8
