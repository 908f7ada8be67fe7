"""The Gymnasium environments: observation, action, reward and the compiled step."""
