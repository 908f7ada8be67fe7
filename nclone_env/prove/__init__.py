"""Proofs that no solution of a level has fewer frames, and checks of their certificates."""
