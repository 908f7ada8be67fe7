"""Explain: which lines grew, what keeps their memory, and which worker processes take it."""
