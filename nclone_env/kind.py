"""What is stated about one kind of entity: the columns of the table in :mod:`nclone_env.kinds`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

STATE, MOVER, TRAIL = "state", "mover", "trail"
"""The parts of a world that hold an entity: its state byte, its mover record, and the path of the ninja."""
STATE_BYTES, MOVER_BYTES = 1, 40
UNLIMITED = 32767
"""The most records of a level, because indices of entities are 16-bit."""


@dataclass(frozen=True, kw_only=True)
class Kind:
    """The facts of one kind of entity."""

    number: int
    """Type byte of a record."""
    name: str
    """Name in level files, messages and documents."""
    module: str | None = None
    """Module under ``sim.entities`` that holds its rules; None if it has no entity, or one without behaviour."""
    pack: str | None = "xy"
    """Bytes of a record in the game's text packs, in order: x, y, o(rientation), m(ode), X and Y of the switch. None if
    packs have no such record. The records of all other formats have x, y, orientation and mode for every kind."""
    orientations: int = 256
    """Number of orientations; greater ones, which some files have, count modulo this number."""
    modes: int = 256
    """Number of modes; likewise."""
    switch: int | None = None
    """Kind of the switch that belongs to it and has a record of its own."""
    is_door: bool = False
    """Whether a segment and lattice edges come and go with its state."""
    has_entity: bool = True
    """Whether worlds hold its state; the switch of a door is one entity with its door, under the kind of the door."""
    has_mover: bool = False
    """Whether it changes its position or aims, so that a world keeps a mover record of it."""
    starts_in_cell: bool = True
    """Whether its mover is registered in a cell, and can be touched, at the start of an episode."""
    acts: bool = False
    """Whether it moves or thinks in every frame."""
    solid: bool = False
    """Whether it pushes the ninja out."""
    deadly: bool = False
    """Whether touching it can kill."""
    shoots: bool = False
    """Whether it kills from a distance."""
    collectable: bool = False
    """Whether touching it once takes it, or works its exit or door."""
    vanishes: bool = False
    """Whether it is no longer active once its state byte is not 0 (physics 02, section 4.1)."""
    most: int = 4096
    """Most records of it in a level, which bounds the time of a frame and the memory of a world: far more than the
    game's editor allows (physics 02, section 10.9) and than any known level has; ``UNLIMITED`` for those that cost
    little."""
    radii: tuple[float, ...] = (0.0,)
    """Radius or half side, pixels: one for all states, or one for each state byte."""
    states: Mapping[str, int] = field(default_factory=dict)
    """Values of the state byte by name; of kinds that pack several fields into the byte, bits by name."""
    initial: int = 0
    """State byte at the start of an episode, without the heading."""
    has_heading: bool = False
    """Whether bits 0 and 1 of the state are a heading, a quarter turn each, at first that of its orientation."""
    ninja_changes: tuple[str, ...] = ()
    """Parts that the ninja can change, by touching the entity or by being where it is."""
    clock: tuple[str, ...] = ()
    """Parts that change as frames pass even if the ninja never comes near."""

    @property
    def state_bytes(self) -> int:
        """Bytes that one entity of this kind takes in every world, the trail of evil ninjas aside."""
        return STATE_BYTES * self.has_entity + MOVER_BYTES * self.has_mover
