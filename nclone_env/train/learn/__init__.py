"""Learning: advantages, PPO and Adam, and what learning from demonstrations needs."""
