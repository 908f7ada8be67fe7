"""A level with one entity that aims at the ninja, which the test places in every frame."""

import numpy as np

from nclone_env.level.load import LevelSource
from nclone_env.sim.session import Session
from nclone_env.sim.state import world_at


class ShootingRange:
    """A world in which every frame begins with a ninja of given place and velocity."""

    def __init__(self, level: LevelSource):
        self.session = Session(level)
        self.ninja = self.session.ninja
        self.mover = world_at(self.session.worlds, 0).movers[0]
        self.frames = 0

    @property
    def state(self) -> int:
        """State byte of the first entity."""
        return int(world_at(self.session.worlds, 0).entity_states[0])

    def frame(self, ninja, velocity=(0.0, 0.0), state=0) -> int:
        """Play one frame, counted from 1; return the state of the ninja after it."""
        self.ninja["x"], self.ninja["y"] = ninja
        self.ninja["vx"], self.ninja["vy"] = velocity
        self.ninja["state"] = state
        self.session.tick(0)
        self.frames += 1
        return int(self.ninja["state"])

    def until(self, frame: int, ninja, velocity=(0.0, 0.0)) -> np.void:
        """Play up to and including a frame; return the first mover."""
        while self.frames < frame:
            self.frame(ninja, velocity)
        return self.mover
