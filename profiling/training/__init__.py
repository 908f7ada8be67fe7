"""Scripts that train: speed of the trainer and its parts, and success rates after training."""
