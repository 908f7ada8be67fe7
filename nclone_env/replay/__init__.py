"""Recordings: attract files of the game, which validate the simulator, and recordings of episodes."""
