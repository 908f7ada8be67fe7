"""Paths through a level: distances, what doors divide, graphs."""
