"""The memory profiler: collect a Recording, compute Stats from it, report them."""
