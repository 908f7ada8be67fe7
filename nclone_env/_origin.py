"""Names of the documents that this package implements, where they are others here.

Errors about unknown names end with them, and ``docs/reference/README.md`` lists them.
"""

RENAMED = {
    "ACTION_DIM": "env.action_space.n",
    "HierarchicalGraphBuilder": "the observation 'graph'",
    "LevelDataCache": "env.level_set, which environments with the same levels share",
    "OBSERVATION_DIM": "the shapes of env.observation_space",
    "ObservationProcessor": "EnvironmentConfig(observations=...)",
    "ReplayBufferList": "nclone_env.train.TrajectoryBuffer",
    "Transition": "nclone_env.train.EpisodeData",
    "benchmark_hot_path": "python -m profiling.training.speed",
    "chunk_size": "none, as TrajectoryBuffer.fill writes in place",
    "compute_gae": "nclone_env.train.TrajectoryBuffer.fill",
    "create_visual_testing_env": "create_environment(render_mode='human')",
    "enable_animation": "none, as no picture is animated",
    "gym_environment": "nclone_env itself",
    "max_buffer_size": "none, as TrajectoryBuffer grows to the steps it is filled with",
    "profile_gpu_sync": "python -m profiling.training.device",
    "profile_hot_path_operations": "python -m profiling.training.speed",
    "pin_to_gpu": "TrajectoryBuffer(..., device='cuda')",
    "update_buffer": "nclone_env.train.TrajectoryBuffer.fill",
}


def renamed(name: str) -> str:
    """Return the end of a message about an unknown name: what it is here; empty if no document has it."""
    return f"; here: {RENAMED[name]}" if name in RENAMED else ""
