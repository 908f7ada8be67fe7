"""Scripts that search for solutions: with the planner, with trained policies, and on generated levels."""
