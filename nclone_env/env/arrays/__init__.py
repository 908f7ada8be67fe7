"""Arrays that observations and results are returned in."""
