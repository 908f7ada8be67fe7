"""Laser turrets: spinners and surface lasers."""
