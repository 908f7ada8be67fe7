"""Targets of the memory profiler: environments in every form, training runs, scripts."""
