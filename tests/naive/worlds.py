"""Random corners of levels, and a simulator and a naive ninja put into the same place."""

import numpy as np
from hypothesis import strategies as st

from nclone_env.level.build import build_level
from nclone_env.level.level import Level
from nclone_env.sim.session import Session

from .geometry import TileWorld
from .ninja import NaiveNinja

WIDTH, HEIGHT = 5, 4  # tiles of the random corner; full blocks close it


@st.composite
def corners(draw) -> Level:
    """Draw a closed room of random tiles in a corner of a level; any of the 38 tiles, half of them empty."""
    tile = st.one_of(st.just(0), st.integers(0, 37))
    drawn = draw(st.lists(tile, min_size=WIDTH * HEIGHT, max_size=WIDTH * HEIGHT))
    tiles = np.zeros((23, 42), np.uint8)
    tiles[:HEIGHT, :WIDTH] = np.array(drawn).reshape(HEIGHT, WIDTH)
    tiles[HEIGHT, : WIDTH + 1] = tiles[:HEIGHT, WIDTH] = 1
    if draw(st.booleans()):
        tiles = tiles[::-1, ::-1].copy()
    return build_level(tiles=tiles, spawn=(10, 10))


def side_by_side(level: Level, x: float, y: float, vx: float, vy: float) -> tuple[Session, NaiveNinja]:
    """Return a simulated world and a naive ninja, both at a place inside the random corner with a velocity."""
    tiles = level.raw.tiles
    if tiles[HEIGHT, 0] != 1 or tiles[0, WIDTH] != 1:  # the corner at the lower right
        x, y = 1056 - x, 600 - y
    session = Session(level)
    for name, value in (("x", x), ("y", y), ("vx", vx), ("vy", vy)):
        session.ninja[name] = value
    return session, NaiveNinja(TileWorld(tiles), x, y, vx, vy)
