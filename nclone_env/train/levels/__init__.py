"""The levels of a run: which it trains on and which it holds out, their solutions, and levels made while it goes on."""
