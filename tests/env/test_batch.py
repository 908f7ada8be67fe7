"""What a batch allocates."""

from nclone_env.config import EnvironmentConfig
from nclone_env.constants import EVIL_NINJA
from nclone_env.env.batch import Batch
from nclone_env.env.compiled.records import NEXT_STEP
from nclone_env.level.load import load_level

from ..sim.levels import room


def test_an_environment_bounds_the_trail_by_its_time_limit():
    level = load_level(room([*[(EVIL_NINJA, 50, 50, 0, 0)] * 9, (3, 90, 58, 0, 0), (4, 100, 58, 0, 0)]))
    config = EnvironmentConfig(levels=level, observations="game_state", max_frames=200)
    batch = Batch(config, 2, NEXT_STEP, num_threads=1)
    assert batch.worlds.trail.shape == (2, 200, 2)
    batch.close()
