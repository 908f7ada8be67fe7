"""Scripts that measure; each runs as a module at the top of the repository."""
