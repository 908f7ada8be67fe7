"""The memory profiler: collect a Recording, compute Stats, write reports."""
