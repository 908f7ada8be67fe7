"""Scripts that measure the package; ``python -m profiling`` lists them."""
