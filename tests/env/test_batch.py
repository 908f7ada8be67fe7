"""What a batch allocates."""

from nclone_env.config import EnvironmentConfig
from nclone_env.env.batch import Batch
from nclone_env.env.compiled.records import NEXT_STEP
from nclone_env.level.build import build_room


def test_an_environment_bounds_the_trail_by_its_time_limit():
    level = build_room(*["evil_ninja 50 50"] * 9, "exit 90 58", "exit_switch 100 58")
    config = EnvironmentConfig(levels=level, observations="game_state", max_frames=200)
    batch = Batch(config, 2, NEXT_STEP, num_threads=1)
    assert batch.worlds.trail.shape == (2, 200, 2)
    batch.close()
