"""Recording of episodes."""

import gymnasium
import numpy as np
import pytest

import nclone_env
from nclone_env.errors import RecordingError
from nclone_env.game import CELEBRATING, DEAD, INPUT_OF_ACTION
from nclone_env.replay.recorder import EpisodeRecorder
from nclone_env.replay.recording import read_recording, write_recording
from nclone_env.sim.trajectory import simulate

from ..env.bases import ENVIRONMENT_ID, JUMP_RIGHT, QUICK_DEATH, QUICK_WIN, RIGHT, WALK


def recorder_of(*levels, **fields) -> EpisodeRecorder:
    config = nclone_env.EnvironmentConfig.for_parallel_training(levels=levels, **fields)
    return EpisodeRecorder(nclone_env.create_environment(config))


def play(recorder, actions, **reset):
    """Play actions until the episode ends; return the last info."""
    _, info = recorder.reset(**reset)
    for action in actions:
        *_, terminated, truncated, info = recorder.step(action)
        if terminated or truncated:
            break
    return info


@pytest.mark.parametrize(("level", "state"), [(QUICK_WIN, CELEBRATING), (QUICK_DEATH, DEAD)])
@pytest.mark.parametrize("frame_skip", [1, 4, 7])
def test_the_recording_ends_as_the_episode_did(level, state, frame_skip):
    recorder = recorder_of(level, frame_skip=frame_skip)
    info = play(recorder, [RIGHT] * 300, seed=7)
    recording = read_recording(write_recording(recorder.recording()))
    verdict = recording.verify()
    assert verdict.agrees
    assert (verdict.frames, verdict.state, verdict.gold) == (info["episode_frames"], state, info["gold"])
    assert recording.level.digest == level.raw.digest
    assert recording.seed == 7
    assert recording.settings == {
        "frame_skip": frame_skip,
        "max_frames": 1200,
        "action_space": "discrete",
        "level": level.name,
        "episode": 0,
    }


@pytest.mark.parametrize(
    "make",
    [
        lambda: nclone_env.NPlusPlusVectorEnv(None, 2, levels=(WALK,), observations="game_state"),
        lambda: gymnasium.make("CartPole-v1"),
        lambda: None,
    ],
)
def test_other_environments_are_refused(make):
    with pytest.raises(RecordingError, match=r"environment: kind: expected a single NPlusPlusEnv, .*, got"):
        EpisodeRecorder(make())


def test_each_frame_is_recorded_with_its_input():
    recorder = recorder_of(WALK, frame_skip=3)
    actions = np.random.default_rng(0).integers(0, 6, 50)
    play(recorder, actions)
    wanted = np.repeat([INPUT_OF_ACTION[action] for action in actions], 3)
    assert recorder.recording().inputs.tolist() == wanted.tolist()


@pytest.mark.parametrize("kind", ["discrete", "multi_discrete"])
def test_a_recording_holds_the_actions_that_were_taken(kind):
    """Of sticky actions: the recording ends where the environment is; the actions that were given lead elsewhere."""
    recorder = recorder_of(WALK, action_repeat_probability=0.5, action_space=kind)
    recorder.env.action_space.seed(1)
    actions = [recorder.env.action_space.sample() for _ in range(50)]
    play(recorder, actions, seed=3)
    recording = read_recording(write_recording(recorder.recording()))
    assert recording.verify().agrees
    numbers = [action[0] + 3 * action[1] if kind == "multi_discrete" else action for action in actions]
    given = np.repeat(np.take(INPUT_OF_ACTION, numbers), 4)
    x, y = (recorder.env.worlds.ninjas[0][name] for name in ("x", "y"))
    ends = [simulate(recording.level, inputs) for inputs in (recording.inputs, given[: len(recording.inputs)])]
    assert [(run.x[-1], run.y[-1]) == (x, y) for run in ends] == [True, False]


def test_wrapped_environment_with_the_other_action_space():
    recorder = EpisodeRecorder(gymnasium.make(ENVIRONMENT_ID, levels=(WALK,), action_space="multi_discrete"))
    play(recorder, [np.array([2, 1])] * 3)
    assert recorder.recording().inputs.tolist() == [INPUT_OF_ACTION[JUMP_RIGHT]] * 12
    assert recorder.recording().settings["action_space"] == "multi_discrete"


def test_a_new_episode_starts_a_new_recording():
    recorder = recorder_of(WALK, QUICK_WIN)
    play(recorder, [RIGHT] * 10, seed=3, options={"level": "corridor"})
    first = recorder.recording()
    play(recorder, [RIGHT] * 2, options={"level": "quick win"})
    second = recorder.recording()
    assert (first.level.digest, len(first.inputs), first.seed, first.settings["episode"]) == (WALK.raw.digest, 40, 3, 0)
    assert second.level.digest == QUICK_WIN.raw.digest
    assert (second.seed, second.settings["episode"]) == (3, 1)
    assert first.verify().agrees
    assert second.verify().agrees


def test_a_refused_action_is_not_recorded():
    recorder = recorder_of(WALK)
    recorder.reset()
    with pytest.raises(nclone_env.NcloneError):
        recorder.step(6)
    assert len(recorder.recording().inputs) == 0


def test_unrecordable_episodes_are_refused():
    recorder = recorder_of(WALK)
    with pytest.raises(RecordingError, match=r"expected a started episode, got none; call reset\(\)"):
        recorder.recording()
    with pytest.raises(RecordingError, match="options: expected an episode from the start of a level"):
        recorder.reset(options={"state": b""})
