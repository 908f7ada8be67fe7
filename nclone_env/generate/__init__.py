"""Levels made by seed, each with a verified recording that completes it."""
