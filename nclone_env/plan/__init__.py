"""Searches on the exact simulator: inputs that complete a level, and the parts to write other searches."""
