"""The behaviour of the entities: one file a family, the same verbs in each."""
