"""The state of a laser turret, and the fields of its mover."""

from nclone_env.kinds import KINDS, LASER_TURRET

SPINNER, CLOCKWISE, COUNTERCLOCKWISE = KINDS[LASER_TURRET].states.values()
"""A turret that turns in place; surface lasers by the sense in which they crawl, as seen on the screen."""

NORMAL_ANGLE, BEAM_ANGLE = "a", "b"
"""Angles of the outward normal of the surface and of the beam, radians from -pi up to below pi, clockwise."""
FRAMES_LEFT, MOTION = "timer", "order"
"""Of a surface laser: remaining frames whose motion is known in closed form, and that motion (``surface_skip``)."""
