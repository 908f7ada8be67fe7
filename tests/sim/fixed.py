"""Let the entities of a level act on a ninja that stays where a test puts it."""

from nclone_env.sim.frame import act_entities
from nclone_env.sim.session import Session
from nclone_env.sim.state import world_at


class FixedNinja(Session):
    """A world in which only the entities run; ``ninja`` is set by the test."""

    def place(self, x: float, y: float, vx: float = 0.0, vy: float = 0.0) -> None:
        """Put the ninja somewhere."""
        self.ninja["x"], self.ninja["y"], self.ninja["vx"], self.ninja["vy"] = x, y, vx, vy

    def act(self, frames: int = 1) -> None:
        """Run the move and the think pass of some frames."""
        for _ in range(frames):
            self.ninja["frame"] += 1
            act_entities(self.levels, self.worlds, 0)

    @property
    def mover(self):
        """The first mover."""
        return world_at(self.worlds, 0).movers[0]

    @property
    def code(self) -> int:
        """The state byte of the entity of the first mover."""
        return int(world_at(self.worlds, 0).entity_states[self.levels.mover_slots[0]])
