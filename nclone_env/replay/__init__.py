"""Recordings: of the game, which the simulator must agree with, and our own, which prove an episode."""
