"""The simulator: one frame of many worlds."""
