"""Measure: records of what is measured, memory of this process, snapshots while code runs, and its source lines."""
