"""The arrays in which observations and results are returned."""
