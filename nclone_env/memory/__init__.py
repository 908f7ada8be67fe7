"""The memory profiler: collect, compute statistics, report."""
