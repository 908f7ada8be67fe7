"""Pictures that are streamed past the caches are the same, wherever the caller's arrays begin."""

import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

from nclone_env import EnvironmentConfig, NPlusPlusVectorEnv, RenderConfig
from nclone_env.env.compiled import step_arrays

N, STEPS = 5, 60
NAMES = ("game_state", "player_frame", "global_view")


def arrays(envs, offset):
    """Return output arrays whose first byte is ``offset`` bytes after a multiple of 16."""
    found = {}
    for name, space in envs.observation_space.spaces.items():
        size = int(np.prod(space.shape)) * space.dtype.itemsize
        memory = np.zeros(size + 32, np.uint8)
        first = -memory.ctypes.data % 16 + (offset if space.dtype == np.uint8 else 0)
        found[name] = memory[first : first + size].view(space.dtype).reshape(space.shape)
    return found


def played(mode, size=128, offset=0, num_threads=2, **fields):
    """Return all observations of a run, last ones of episodes included, as bytes."""
    fields = {"observations": NAMES, "render": RenderConfig(size), "max_frames": 60, **fields}
    envs = NPlusPlusVectorEnv(num_envs=N, num_threads=num_threads, autoreset_mode=mode, **fields)
    out, seen = arrays(envs, offset), []
    envs.reset(seed=3, out=out)
    for step in range(STEPS):
        infos = envs.step(np.full(N, step % 6), out=out)[-1]
        finals = infos.get("final_obs", {})
        seen += [array.tobytes() for array in (*out.values(), *finals.values())]
    names = [part.name for _, part in envs.memory().walk() if part.total_bytes]
    envs.close()
    return seen, "canvas" in names


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
@pytest.mark.parametrize(("size", "offset"), [(128, 0), (128, 8), (84, 0), (64, 1)])
def test_streamed_pictures_are_the_same(monkeypatch, mode, size, offset):
    expected, streamed = played(mode, size)
    assert not streamed
    monkeypatch.setattr(step_arrays, "STREAMED_BYTES", 0)
    assert played(mode, size, offset) == (expected, True)
    assert len(set(expected)) > STEPS, "the pictures change"


def test_stacks_are_the_same(monkeypatch):
    fields = {"observations": ("player_frame",), "observation": {"frame_stack": 3}}
    expected, _ = played(AutoresetMode.SAME_STEP, **fields)
    monkeypatch.setattr(step_arrays, "STREAMED_BYTES", 0)
    assert played(AutoresetMode.SAME_STEP, **fields) == (expected, True)


@pytest.mark.parametrize(
    ("num_envs", "names", "rows"),
    [
        (341, ("player_frame", "global_view"), (0, 0)),
        (342, ("player_frame", "global_view"), (3, 3)),
        (1023, ("player_frame",), (0, 0)),
        (1024, ("player_frame",), (3, 0)),
        (1_000_000, (), (0, 0)),
    ],
)
def test_pictures_are_streamed_from_16_megabytes_on(num_envs, names, rows):
    config = EnvironmentConfig(observations=("game_state", *names))  # 16 and 32 KB each
    canvas = step_arrays.make_canvas(config, num_envs, slots=3)
    assert (len(canvas.player_frame), len(canvas.global_view)) == rows
