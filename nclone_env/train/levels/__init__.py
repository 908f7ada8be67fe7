"""The levels of a run: which it trains on and which it holds out, how often each is played, and their solutions."""
