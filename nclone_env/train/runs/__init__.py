"""A run from its set-up to its end: what it owns, its folder, and how it is saved and resumed."""
