"""Collection: environments play, choose their levels and starts, and fill the rollout."""
