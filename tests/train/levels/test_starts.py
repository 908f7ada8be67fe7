"""Snapshots along solutions, and starts that move back from the exit to the start of a level."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nclone_env import EnvironmentConfig, NPlusPlusEnv, NPlusPlusVectorEnv
from nclone_env.config import ObservationConfig
from nclone_env.env.compiled.records import PLAYING, WON
from nclone_env.errors import ConfigError, InputsError, UnknownLevelError
from nclone_env.level.solutions import known_solutions
from nclone_env.train.hooks import Hooks
from nclone_env.train.levels.starts import (
    BackwardStarts,
    start_states,
)

LEVELS = ("first-steps/06-hop", "hazards/02-minefield")
CONFIG = EnvironmentConfig(levels=LEVELS, observations=("game_state", "reachability"), frame_skip=4)
SOLUTIONS = {name: known_solutions()[name] for name in LEVELS}
ACTION_OF_INPUT = {0: 0, 4: 1, 2: 2, 1: 3, 5: 4, 3: 5}


def single(**fields) -> NPlusPlusEnv:
    return NPlusPlusEnv(CONFIG.replace(observations="game_state", frame_skip=1, **fields))


def outcome_of(env: NPlusPlusEnv, state: bytes, inputs: bytes) -> tuple[str, int]:
    """Play inputs from a snapshot; return the outcome and the number of inputs played."""
    env.reset(options={"state": state})
    played = 0
    for code in inputs:
        info = env.step(ACTION_OF_INPUT[code])[4]
        played += 1
        if info["outcome"] != "playing":
            break
    return info["outcome"], played


def along(level: str, inputs: Any, count: int, **fields: Any) -> dict[int, bytes]:
    """Return the snapshots along a solution of one level by frame."""
    starts = start_states(CONFIG.replace(**fields), {level: inputs}, count)
    return dict(zip(starts.frames.tolist(), starts.states, strict=True))


@pytest.mark.parametrize("level", LEVELS)
def test_the_rest_of_the_solution_wins_from_every_snapshot(level):
    env, inputs = single(), SOLUTIONS[level]
    states = along(level, inputs, 5)
    assert len(states) == 5
    gaps = np.diff([0, *states, len(inputs)])
    assert gaps.max() - gaps.min() <= 1
    for frame, state in states.items():
        assert outcome_of(env, state, inputs[frame:]) == ("won", len(inputs) - frame)
        assert outcome_of(env, state, inputs[frame:-1])[0] == "playing"  # the last input is needed
    assert outcome_of(env, states[min(states)], bytes(len(inputs)))[0] != "won"  # and so are the others


def test_short_solutions_and_long_recordings():
    level = LEVELS[0]
    inputs = SOLUTIONS[level]
    every = along(level, inputs, 10_000)
    assert list(every) == list(range(1, len(inputs)))
    longer = along(level, [*inputs, 0, 0, 0], 5)
    assert longer == along(level, inputs, 5)
    both = bytes(code | 6 if code & 4 else code for code in inputs)  # left and right together mean left
    assert along(level, both, 5) == longer


def test_snapshots_do_not_depend_on_the_solutions_that_are_played_together(monkeypatch):
    levels = tuple(known_solutions())[:5]
    solutions = {name: known_solutions()[name] for name in levels}
    config, played = CONFIG.replace(levels=levels, max_frames=2000), []
    hooks = Hooks(on_level=lambda what, done, count: played.append((what, done, count)))
    together = start_states(config, solutions, 3)
    monkeypatch.setattr("nclone_env.train.levels.starts._TOGETHER", 2)
    assert start_states(config, solutions, 3, hooks).states == together.states
    assert played == [("solutions played", done, 5) for done in (2, 4, 5)]
    assert len(set(together.states)) == 15


def test_episodes_of_a_vector_environment_end_as_the_solution_does():
    """Start states of two levels, with the frame skip of the configuration; the solutions hold inputs four frames."""
    starts = start_states(CONFIG, SOLUTIONS, 4)
    assert starts.levels.tolist() == [0] * 4 + [1] * 4
    assert (np.diff(starts.frames.reshape(2, 4)) > 0).all()
    envs = NPlusPlusVectorEnv(CONFIG, 8, autoreset_mode="SameStep")
    envs.assign_levels(starts.levels)
    shares = np.zeros(8)
    finished = np.full(8, PLAYING)
    control = single()
    for number in range(8):
        shares[:] = np.arange(8) == number
        envs.set_starts(starts.states, shares)
        own = starts.levels[number]
        _, info = envs.reset(seed=0)
        assert set(info["start"][starts.levels == own].tolist()) == {number}
        env = NPlusPlusEnv(CONFIG)
        env.reset(options={"state": starts.states[number]})
        inputs = SOLUTIONS[LEVELS[own]][starts.frames[number] :]
        assert outcome_of(control, starts.states[number], inputs)[0] == "won"
        over = False
        for code in inputs[::4]:
            step = env.step(ACTION_OF_INPUT[code])
            _, rewards, ends, stops, info = envs.step(np.full(8, ACTION_OF_INPUT[code]))
            over = step[2] or step[3]
            assert rewards[number] == step[1]
            assert (ends[number], stops[number]) == step[2:4]
            if over:
                finished[number] = info["final_info"]["outcome"][number]
                assert info["final_info"]["episode_return"][number] == step[4]["episode_return"]
                break
    assert (finished == WON).any()


def test_start_states_are_deterministic():
    one, two = start_states(CONFIG, SOLUTIONS, 3), start_states(CONFIG, dict(reversed(SOLUTIONS.items())), 3)
    assert one.states == two.states
    assert one.states != start_states(CONFIG, SOLUTIONS, 4).states[:6]
    assert len(set(one.states)) == 6


def test_other_settings_of_the_environment_do_not_matter():
    stacked = CONFIG.replace(
        observations=("game_state",), observation=ObservationConfig(frame_stack=4), action_space="multi_discrete"
    )
    starts = start_states(stacked, {LEVELS[1]: SOLUTIONS[LEVELS[1]]}, 2)
    assert starts.levels.tolist() == [1, 1]
    envs = NPlusPlusVectorEnv(stacked, 2)
    envs.set_starts(starts.states)
    envs.assign_levels([1, 1])
    assert (envs.reset(seed=0)[1]["start"] >= 0).all()


@pytest.mark.parametrize(
    ("level", "inputs", "count", "error", "message"),
    [
        (LEVELS[0], SOLUTIONS[LEVELS[0]][:-1], 3, ConfigError, "reaches the exit of .*06-hop', got playing after 214"),
        (LEVELS[0], b"", 3, ConfigError, "reaches the exit of .*06-hop', got no input after 0 frames"),
        (LEVELS[1], bytes([2]) * 900, 3, ConfigError, "reaches the exit of .*02-minefield', got died after"),
        (LEVELS[0], bytes(900), 3, ConfigError, "got timed_out after 300 frames; max_frames is 300"),
        (
            LEVELS[0],
            bytes([2, 8]),
            3,
            InputsError,
            r"expected bytes 0\.\.7 for .*06-hop', got 8 \(give up\) in frame 1",
        ),
        (LEVELS[0], [16], 3, InputsError, "expected bytes from 0 to 15"),
        (LEVELS[0], SOLUTIONS[LEVELS[0]], 0, ConfigError, "count: expected a whole number from 1"),
        ("no such level", b"", 3, UnknownLevelError, "expected a name .*, got 'no such level'"),
    ],
)
def test_inputs_that_are_no_solution_are_refused(level, inputs, count, error, message):
    with pytest.raises(error, match=message):
        along(level, inputs, count, max_frames=300)


def test_unknown_levels_of_solutions_are_refused():
    with pytest.raises(UnknownLevelError, match="got 'slalom'"):
        start_states(CONFIG, {"slalom": b""}, 3)


# Backward starts: level 0 has four states (0 to 3), level 1 none, level 2 two (4 and 5)

STATE_LEVELS = np.array([0, 0, 0, 0, 2, 2])


def backward(**options) -> BackwardStarts:
    return BackwardStarts(STATE_LEVELS, 3, **options)


def play(starts: BackwardStarts, start: int, level: int, success: bool, episodes: int = 1) -> bool:
    changed = [starts.update(np.array([start]), np.array([level]), np.array([success])) for _ in range(episodes)]
    return any(changed)


def test_the_last_states_are_used_first():
    starts = backward()
    assert starts.ahead.tolist() == [4, 0, 2]
    assert starts.shares() == pytest.approx([0, 0, 0, 0.8, 0, 0.8])


def test_the_start_moves_back_as_success_passes_the_threshold():
    starts = backward()
    assert not play(starts, 3, 0, True, 9)
    assert play(starts, 3, 0, True)
    assert starts.ahead.tolist() == [3, 0, 2]
    assert starts.shares() == pytest.approx([0, 0, 0.4, 0.4, 0, 0.8])
    assert not play(starts, 3, 0, True, 50)  # only the earliest state moves the start
    assert play(starts, 2, 0, True, 10)
    assert play(starts, 1, 0, True, 10)
    assert starts.shares() == pytest.approx([0.8 / 3] * 3 + [0, 0, 0.8])
    assert play(starts, 0, 0, True, 10)
    assert starts.ahead.tolist() == [0, 0, 2]
    assert starts.shares() == pytest.approx([0, 0, 0, 0, 0, 0.8])
    assert not play(starts, 0, 0, True, 50)


@pytest.mark.parametrize(("threshold", "moves"), [(0.3, True), (0.7, False)])
def test_the_threshold_decides(threshold, moves):
    starts = backward(threshold=threshold)
    for number in range(100):
        play(starts, 3, 0, number % 2 == 0)
    assert (starts.ahead[0] < 4) == moves


def test_failures_forgotten_over_time_do_not_hold_a_level_back():
    starts = backward()
    assert not play(starts, 3, 0, False, 500)
    assert play(starts, 3, 0, True, 10)


def test_success_from_the_start_of_the_level_ends_it():
    starts = backward()
    assert not play(starts, -1, 0, False, 20)
    assert play(starts, -1, 0, True, 10)
    assert starts.ahead.tolist() == [0, 0, 2]
    assert not play(starts, -1, 1, True, 20)  # without start states nothing changes


def test_a_level_moves_by_one_state_an_update_whatever_the_order():
    rng = np.random.default_rng(0)
    begun, levels = np.array([3] * 60 + [5] * 40), np.array([0] * 60 + [2] * 40)
    success = np.arange(100) % 3 > 0
    results = []
    for _ in range(5):
        starts, order = backward(), rng.permutation(100)
        assert starts.update(begun[order], levels[order], success[order])
        results.append({name: array.tobytes() for name, array in starts.state().items()})
        assert starts.ahead.tolist() == [3, 0, 1]
    assert results == results[:1] * 5


def test_a_restored_state_goes_on_bit_for_bit():
    rng = np.random.default_rng(1)
    starts, fresh, other = backward(), backward(), backward()
    play(starts, 3, 0, True, 14)
    state = starts.state()
    fresh.restore(state)
    for _ in range(30):
        chosen = rng.integers(0, 6, 4)
        batch = chosen, STATE_LEVELS[chosen], rng.random(4) < 0.4
        assert starts.update(*batch) == fresh.update(*batch)
        other.update(*batch)
    assert {name: array.tobytes() for name, array in starts.state().items()} == {
        name: array.tobytes() for name, array in fresh.state().items()
    }
    assert starts.state()["earliest"].tobytes() != other.state()["earliest"].tobytes()
    assert state["ahead"].tolist() == [3, 0, 2]  # a copy
    with pytest.raises(
        ConfigError, match=r"state\['ahead'\]: expected int64 of shape \(3,\), got int64 of shape \(4,\)"
    ):
        starts.restore(BackwardStarts(STATE_LEVELS, 4).state())


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: BackwardStarts(np.array([1, 0]), 2), "levels: expected those of a level one after another"),
        (lambda: BackwardStarts(np.array([0, 2]), 2), "levels: expected numbers from 0 to 1, got 0 to 2"),
        (lambda: backward(threshold=1.0), r"threshold: expected a success rate between 0 and 1, got 1\.0"),
        (lambda: backward(share=0.0), r"share: expected a share above 0, at most 1, got 0\.0"),
        (lambda: play(backward(), 6, 0, True), "starts: expected numbers from -1 to 5, got 6 to 6"),
        (lambda: play(backward(), -2, 0, True), "starts: expected numbers from -1 to 5, got -2 to -2"),
        (lambda: play(backward(), 0, 3, True), "levels: expected numbers from 0 to 2, got 3 to 3"),
        (
            lambda: backward().update(np.zeros(2, int), np.zeros(1, int), np.ones(1, bool)),
            r"starts: expected shape \(1,\)",
        ),
    ],
)
def test_wrong_arguments_are_refused(make, message):
    with pytest.raises(ConfigError, match=message):
        make()


def test_backward_starts_drive_an_environment_back_to_the_start():
    """A player of the solution, who fails in one episode of four, walks the starts back to the start of each level."""
    config = CONFIG.replace(observations="game_state", frame_skip=1, max_frames=300)
    states = start_states(config, SOLUTIONS, 3)
    envs = NPlusPlusVectorEnv(config, 16, autoreset_mode="NextStep")
    starts = BackwardStarts(states.levels, 2)
    envs.set_starts(states.states, starts.shares())
    table = np.zeros((2, 400), int)
    for row, name in enumerate(LEVELS):
        table[row, : len(SOLUTIONS[name])] = [ACTION_OF_INPUT[code] for code in SOLUTIONS[name]]
    rng = np.random.default_rng(0)
    gives_up, place = np.zeros(16, bool), np.zeros(16, int)
    seen = [starts.ahead.tolist()]
    _, info = envs.reset(seed=4)
    ends = stops = np.zeros(16, bool)
    for _ in range(10_000):
        began, over = info["frames"] == 0, ends | stops
        place = np.where(began, info["episode_frames"], place + 1)
        gives_up[began] = rng.random(began.sum()) < 0.25
        if over.any() and starts.update(info["start"][over], info["level"][over], info["outcome"][over] == WON):
            envs.set_start_shares(starts.shares())
            seen.append(starts.ahead.tolist())
        if not starts.ahead.any():
            break
        actions = np.where(gives_up, 0, table[info["level"], np.minimum(place, 399)])
        _, _, ends, stops, info = envs.step(actions)
    assert seen[-1] == [0, 0]
    assert seen[0] == [3, 3]
