"""The environments as classes of other libraries: Stable-Baselines3 and PufferLib."""
