"""The reachability observation: answers and the cache of distance fields behind them."""
