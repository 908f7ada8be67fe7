"""Gymnasium's tools for people: windows, videos, and playing with the keyboard."""

import itertools

import cv2
import gymnasium
import numpy as np
import pytest
from gymnasium.wrappers import RecordVideo, vector

from nclone_env import NPlusPlusEnv, NPlusPlusVectorEnv, errors
from nclone_env.game import INPUT_OF_ACTION, KEYS

from ..env.bases import ENVIRONMENT_ID, RIGHT, WALK

FIELDS = {"levels": WALK, "observations": "game_state", "render_mode": "rgb_array", "render": {"picture_scale": 0.25}}


def make(num_envs, **fields):
    return NPlusPlusVectorEnv(None, num_envs, **FIELDS | fields)


def test_there_is_a_picture_of_each_environment():
    envs, env = make(3), NPlusPlusEnv(**FIELDS)
    envs.reset()
    for _ in range(10):
        envs.step([RIGHT, 0, RIGHT])
    pictures = envs.render()
    assert isinstance(pictures, tuple)
    assert [picture.shape for picture in pictures] == [(150, 264, 3)] * 3
    np.testing.assert_array_equal(pictures[0], pictures[2])
    assert (pictures[0] != pictures[1]).any()
    env.reset()
    for _ in range(10):
        env.step(0)
    np.testing.assert_array_equal(pictures[1], env.render())


def test_a_picture_keeps_its_size_unless_it_is_cropped():
    pictures = []
    for crop in (False, True):
        env = NPlusPlusEnv(levels=WALK, observations="game_state", render_mode="rgb_array", render={"crop": crop})
        env.reset(seed=0)
        pictures.append(env.render())
    whole, cropped = pictures
    assert whole.shape == (600, 1056, 3)
    assert cropped.shape[0] < 300
    background = whole[env.worlds.ninjas["y"].astype(int)[0], env.worlds.ninjas["x"].astype(int)[0] + 60]
    share = [(picture == background).all(axis=2).mean() for picture in pictures]
    assert share[0] < 0.1
    assert share[1] >= 0.35


def test_pictures_that_do_not_fit_are_not_drawn(monkeypatch):
    envs = make(50)
    envs.reset()
    monkeypatch.setattr("nclone_env.machine.available_bytes", lambda: 3_000_000)
    with pytest.raises(errors.MemoryLimitError, match=r"render: pictures of num_envs: 50 need .* at most 25 fit"):
        envs.render()


def test_the_window_of_gymnasium_shows_all_environments(pygame):
    envs = vector.HumanRendering(make(4), screen_size=(528, 300))
    envs.reset()
    shown = pygame.surfarray.array3d(pygame.display.get_surface())
    quarters = [shown[x : x + 264, y : y + 150] for x in (0, 264) for y in (0, 150)]
    for quarter in quarters:
        np.testing.assert_array_equal(quarter, quarters[0])
        assert len(np.unique(quarter)) > 2
    envs.step([RIGHT, 0, 0, 0])
    envs.step([RIGHT, 0, 0, 0])
    assert (pygame.surfarray.array3d(pygame.display.get_surface()) != shown).any()
    envs.close()


def frames_of(path) -> tuple[int, tuple[int, int]]:
    """Return the number of frames of a video, and their height and width."""
    video, count, shape = cv2.VideoCapture(str(path)), 0, (0, 0)
    while True:
        more, frame = video.read()
        if not more:
            return count, shape
        count, shape = count + 1, frame.shape[:2]


def test_a_video_of_one_environment(tmp_path):
    pytest.importorskip("moviepy")
    env = RecordVideo(NPlusPlusEnv(**FIELDS, max_frames=40), str(tmp_path), fps=15)
    env.reset()
    while not any(env.step(RIGHT)[2:4]):
        pass
    env.close()
    assert frames_of(tmp_path / "rl-video-episode-0.mp4") == (11, (150, 264))


@pytest.mark.skipif(not hasattr(vector, "RecordVideo"), reason="this Gymnasium has no videos of vector environments")
def test_a_video_of_several_environments(tmp_path):
    pytest.importorskip("moviepy")
    envs = vector.RecordVideo(
        make(4), str(tmp_path), video_aspect_ratio=(16, 9), step_trigger=lambda step: step == 0, video_length=6, fps=15
    )
    envs.reset()
    for _ in range(8):
        envs.step([RIGHT, 0, 0, 0])
    envs.close()
    (path,) = tmp_path.glob("*.mp4")
    count, shape = frames_of(path)
    assert 6 <= count <= 7
    assert shape == (300, 528)


@pytest.mark.parametrize("kind", ["discrete", "multi_discrete"])
def test_every_action_has_keys(kind):
    env = NPlusPlusEnv(**FIELDS, action_space=kind)
    table = env.get_keys_to_action()
    assert all(action in env.action_space for action in table.values())
    chosen = {tuple(np.atleast_1d(action)) for action in table.values()}
    nothing = {(0,)} if kind == "discrete" else {(0, 0)}
    every = {(action,) for action in range(6)} if kind == "discrete" else set(itertools.product(range(3), range(2)))
    assert chosen == every - nothing


def test_the_keys_are_those_of_pygame(pygame):
    table = NPlusPlusEnv(**FIELDS).get_keys_to_action()
    assert table[(pygame.K_LEFT,)] == table[(pygame.K_a,)] == 1
    assert table[(pygame.K_RIGHT,)] == table[(pygame.K_d,)] == 2
    assert {table[(key,)] for key in (pygame.K_SPACE, pygame.K_z, pygame.K_w, pygame.K_UP)} == {3}
    assert table[(pygame.K_RIGHT, pygame.K_SPACE)] == 5
    codes = {getattr(pygame, f"K_{name if len(name) == 1 else name.upper()}"): bit for name, bit in KEYS.items()}
    alone = {keys[0]: INPUT_OF_ACTION[action] for keys, action in table.items() if len(keys) == 1}
    assert alone == codes
    assert (pygame.K_q,) not in table


def test_gymnasium_plays_without_being_told_the_keys(pygame):
    from gymnasium.utils.play import play

    env, seen = gymnasium.make(ENVIRONMENT_ID, **FIELDS), []

    def press(before, after, action, *rest):
        keys = {0: (pygame.KEYDOWN, pygame.K_RIGHT), 2: (pygame.KEYDOWN, pygame.K_SPACE), 4: (pygame.QUIT, None)}
        seen.append(action)
        if len(seen) - 1 in keys:
            kind, key = keys[len(seen) - 1]
            pygame.event.post(pygame.event.Event(kind, {} if key is None else {"key": key}))

    play(env, callback=press, seed=0)
    assert seen == [0, 2, 2, 5, 5]


@pytest.mark.parametrize(("frame_skip", "rate"), [(1, 60), (4, 15), (60, 1)])
def test_whole_rates_are_integers_as_play_asks_for(frame_skip, rate):
    for env in (NPlusPlusEnv(**FIELDS, frame_skip=frame_skip), make(2, frame_skip=frame_skip)):
        assert env.metadata["render_fps"] == rate
        assert type(env.metadata["render_fps"]) is int
    assert NPlusPlusEnv(**FIELDS, frame_skip=7).metadata["render_fps"] == 60 / 7
