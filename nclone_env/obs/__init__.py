"""Observations: the table that defines them, and their writers."""
