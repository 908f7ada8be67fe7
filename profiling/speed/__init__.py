"""Scripts that measure time: the simulator, environments, observations, pictures, galleries, start-up."""
