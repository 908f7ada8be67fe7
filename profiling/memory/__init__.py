"""Scripts that measure memory: allocations, bytes of each environment, growth."""
