"""Levels: file formats, compilation, packing, distance fields."""
