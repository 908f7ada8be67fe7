"""What each family of entities does; one file a family, the same verbs in each."""
