"""Outcomes of held actions against playing each of them frame by frame, on a copy of the world."""

import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

from nclone_env import NPlusPlusEnv, NPlusPlusVectorEnv
from nclone_env.game import CELEBRATING, DEAD, INPUT_OF_ACTION, MAX_HORIZONTAL_SPEED
from nclone_env.level.build import build_room, everything
from nclone_env.level.routes.fields import distance_at
from nclone_env.obs.game_state import objective
from nclone_env.obs.spec import ACTION_OUTCOME
from nclone_env.sim.session import Session
from nclone_env.sim.state import WorldArrays, copy_world
from tests.shared import ATTRACT, SHARED, needs_shared

from ..env import peek
from ..env.bases import QUICK_DEATH, QUICK_WIN, choices
from .levels import BUILT_IN

NAME = "action_outcomes"
ELEMENTS = [feature.name for feature in ACTION_OUTCOME]


class Oracle:
    """Plays every action for the whole time, one frame after another, and rates the worlds."""

    def __init__(self, envs: NPlusPlusVectorEnv | NPlusPlusEnv):
        self.frames = envs.config.observation.outcome_frames
        self.levels, self.paths = envs.level_set.arrays, peek.step_arrays(envs).paths
        self.session = Session(envs.level_set, 1, envs.config.max_frames + self.frames)

    def outcomes(self, worlds: WorldArrays, index: int) -> np.ndarray:
        """Return (6, 8) float32."""
        return np.array([self.outcome(worlds, index, action) for action in range(6)], np.float32)

    def outcome(self, worlds: WorldArrays, index: int, action: int) -> list[float]:
        """Return the elements of one action."""
        session, early, died, won = self.session, (self.frames + 2) // 3, 0.0, 0.0
        copy_world(worlds, index, session.worlds, 0)
        before, at_first = session.ninja.copy(), self.length()
        places = []
        for frame in range(self.frames):
            session.tick(INPUT_OF_ACTION[action])
            places.append((session.ninja["x"], session.ninja["y"], self.length()))
            left = (self.frames - frame) / self.frames
            if session.ninja["state"] in (DEAD, CELEBRATING):
                died, won = (left, 0.0) if session.ninja["state"] == DEAD else (0.0, left)
                break
        row = [died, won]
        for count in (early, self.frames):
            x, y, length = places[min(count, len(places)) - 1]
            differences = x - before["x"], y - before["y"], at_first - length
            row += [min(max(one / (MAX_HORIZONTAL_SPEED * count), -1), 1) for one in differences]
        return row

    def length(self) -> float:
        """Return the path length of the world that is played."""
        worlds = self.session.worlds
        field, _ = objective(self.levels, self.paths, worlds, 0)
        return min(distance_at(self.paths, field, worlds.ninjas[0]["x"], worlds.ninjas[0]["y"]), 10_000.0)


def check_run(steps: int, seed: int, every: int = 1, **fields) -> np.ndarray:
    """Compare the outcomes of a random run; return all that were compared, (n, 6, 8)."""
    envs = NPlusPlusVectorEnv(None, 6, observations=(NAME, "game_state"), **fields)
    oracle, seen = Oracle(envs), []
    observations, _ = envs.reset(seed=seed)
    for step, actions in enumerate(choices(steps, 6, seed)):
        if step % every == 0:
            for index in range(6):
                seen.append(oracle.outcomes(envs.worlds, index))
                np.testing.assert_array_equal(observations[NAME][index], seen[-1])
        observations = envs.step(actions)[0]
    return np.array(seen)


@pytest.mark.parametrize("frames", [pytest.param(3, marks=pytest.mark.slow), 8, 60])
def test_outcomes_are_those_of_the_frames_one_by_one(frames):
    levels = (*BUILT_IN, QUICK_WIN, QUICK_DEATH, everything())
    fields = {"frame_skip": 3, "max_frames": 90, "observation": {"outcome_frames": frames}}
    rows = check_run(60, 1, every=3 if frames == 60 else 1, levels=levels, **fields)
    constant = [name for element, name in enumerate(ELEMENTS) if np.ptp(rows[:, :, element]) == 0]
    assert set(constant) <= {"death", "completion"}, "random play seldom comes near the exit"
    jump_matters = (rows[:, :3] != rows[:, 3:]).any(axis=2)
    assert 0.1 < jump_matters.mean() < 0.95, "neither copied outcomes nor others were compared"


@pytest.mark.parametrize(("level", "element"), [(QUICK_DEATH, "death"), (QUICK_WIN, "completion")])
def test_ends_come_nearer_frame_by_frame(level, element):
    env = NPlusPlusEnv(levels=level, observations=NAME, frame_skip=1, observation={"outcome_frames": 60})
    oracle, seen, over = Oracle(env), [env.reset()[0][NAME]], False
    while not over:
        np.testing.assert_array_equal(seen[-1], oracle.outcomes(env.worlds, 0))
        observation, _, over, _, _ = env.step(2)
        seen.append(observation[NAME])
    to_the_right = np.array(seen)[:, 2, ELEMENTS.index(element)]
    np.testing.assert_allclose(np.diff(to_the_right)[:-1], 1 / 60, atol=1e-6)
    assert to_the_right[-2:].tolist() == [1, 1], "the frame that ends the episode, and the world after it"


@needs_shared
@pytest.mark.parametrize("paths", [pytest.param("tiles", marks=pytest.mark.slow), "doors"])
def test_outcomes_on_recorded_levels(paths):
    check_run(60, 2, every=4, levels=ATTRACT, max_frames=120, paths=paths)


@needs_shared
def test_evil_ninjas_beyond_the_time_limit():
    """Their trail must hold the frames that are tried beyond the limit."""
    pack = SHARED / "maps" / "official-S.txt"
    rows = check_run(40, 3, every=6, levels=f"{pack}#149", max_frames=60, observation={"outcome_frames": 90})
    assert rows[:, :, 0].max() >= 0


def test_snapshots_are_those_of_other_environments():
    """The frames beyond the limit take room in scratch memory alone, also for the trail of evil ninjas."""
    level = build_room("exit 160 57", "exit_switch 150 57", *["evil_ninja 60 57"] * 3, title="evil ninjas")
    plain, seeing = (
        NPlusPlusEnv(levels=level, observations=names, max_frames=200) for names in (("game_state",), (NAME,))
    )
    plain.reset(seed=1)
    for _ in range(12):
        plain.step(2)
    seeing.reset(seed=1)
    observation = seeing.set_state(plain.get_state())
    np.testing.assert_array_equal(observation[0][NAME], Oracle(seeing).outcomes(plain.worlds, 0))


def test_a_press_that_still_counts_is_no_copy():
    """In the air jump does nothing, unless the ninja lands within five frames: both must be met."""
    env = NPlusPlusEnv(levels="first-steps/03-drop", observations=NAME, frame_skip=1, max_frames=300)
    oracle, observation = Oracle(env), env.reset()[0]
    differs = []
    for _ in range(120):
        outcomes = oracle.outcomes(env.worlds, 0)
        np.testing.assert_array_equal(observation[NAME], outcomes)
        differs.append(bool((outcomes[:3] != outcomes[3:]).any()))
        observation = env.step(2)[0]
    assert 10 < sum(differs) < 110


def test_the_time_limit_is_no_outcome():
    fields = {"levels": "jumps/01-stairs", "observations": NAME, "autoreset_mode": AutoresetMode.DISABLED}
    short, long = (NPlusPlusVectorEnv(None, 1, max_frames=limit, **fields) for limit in (8, 80))
    short.reset(seed=1)
    long.reset(seed=1)
    for _ in range(2):
        left, right = short.step(np.array([5])), long.step(np.array([5]))
        np.testing.assert_array_equal(left[0][NAME], right[0][NAME])
    assert left[3].all()
    assert not right[3].any()
    assert np.abs(left[0][NAME]).max() > 0.1


def test_levels_exchanged_in_mid_run():
    envs = NPlusPlusVectorEnv(None, 4, levels="jumps", observations=NAME, max_frames=40)
    envs.reset(seed=1)
    envs.step(np.full(4, 5))
    envs.exchange_levels(("hazards", "first-steps"))
    for actions in choices(20, 4):
        observations = envs.step(actions)[0]
    oracle = Oracle(envs)
    for index in range(4):
        np.testing.assert_array_equal(observations[NAME][index], oracle.outcomes(envs.worlds, index))


def test_outcomes_do_not_depend_on_where_they_are_cut(monkeypatch):
    """Pieces of one frame, of some, and of a whole batch give the same."""
    from nclone_env.sim.pace import Pace

    found = []
    for size in (1, 7, 10**6):
        monkeypatch.setattr(Pace, "adjust", lambda self, done, seconds, size=size: setattr(self, "size", size))
        envs = NPlusPlusVectorEnv(levels="hazards", observations=("action_outcomes",), num_envs=5, num_threads=1)
        rows = [envs.reset(seed=0)[0]["action_outcomes"].copy()]
        rows += [envs.step(np.full(5, 2))[0]["action_outcomes"].copy() for _ in range(8)]
        found.append(np.stack(rows))
        envs.close()
    assert found[0].any()
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])
