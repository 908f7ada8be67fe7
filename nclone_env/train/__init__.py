"""The PPO trainer; the only part that imports torch."""
