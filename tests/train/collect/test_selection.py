"""Level weights and start states in a training run: what is drawn, what is counted, what is saved."""

import csv

import numpy as np
import pytest

from nclone_env.env.compiled.records import DIED, PLAYING, WON
from nclone_env.train.collect.environments import make_environments
from nclone_env.train.collect.episodes import FINISHED, EpisodeLog, EpisodeStatistics
from nclone_env.train.collect.selection import EpisodeSelection
from nclone_env.train.levels.curriculum import LevelCurriculum
from nclone_env.train.levels.solutions import Planner, run_starts
from nclone_env.train.loop import train
from nclone_env.train.runs.begin import begun_run
from nclone_env.train.runs.steps import collect_rollout

from ..runs import config, contents
from ..stub import LineWorld

LEVELS = ("first-steps/06-hop", "hazards/02-minefield")


def ended(*rows):
    """Return records of episodes given their level, start and success."""
    return np.array([(0.0, 8, *row) for row in rows], FINISHED)


class Group:
    """Environments that remember what they are given."""

    level_names = ("a", "b", "c")

    def __init__(self):
        self.calls = []

    def set_level_weights(self, weights):
        self.calls.append(("weights", weights.tolist()))

    def set_starts(self, states, share):
        self.calls.append(("starts", list(states), share.tolist()))

    def set_start_shares(self, share):
        self.calls.append(("shares", share.tolist()))


def test_without_curriculum_and_starts_nothing_is_touched():
    group = Group()
    selection = EpisodeSelection([group])
    selection.update([ended((0, -1, True))])
    selection.restore({})
    assert group.calls == []
    assert selection.weights is None
    assert selection.state() == {}


def test_every_group_gets_the_weights_of_all_episodes():
    groups = [Group(), Group()]
    selection = EpisodeSelection(groups, curriculum=True)
    selection.update([ended(*[(0, -1, True)] * 200), ended(*[(1, -1, bool(n % 2)) for n in range(200)])])
    expected = LevelCurriculum(3)
    expected.update(np.repeat([0, 1], 200), np.r_[np.ones(200, bool), np.arange(200) % 2 == 1])
    weights = expected.weights().tolist()
    assert groups[0].calls == groups[1].calls == [("weights", weights)]
    assert weights[1] > 2 * weights[0], "an uncertain level is drawn more often than a solved one"


def weights_drawn(tmp_path, name, make_envs=make_environments, **fields):
    """Return the episodes of each level and the weights of a run, from its table of levels."""
    settings = config(tmp_path, name=name, levels=LEVELS, max_frames=400, total_timesteps=32 * 16 * 30, **fields)
    train(settings, make_envs=make_envs)
    table = list(csv.DictReader((tmp_path / name / "levels.csv").open()))
    return [int(row["episodes"]) for row in table], [row["weight"] for row in table]


def test_the_curriculum_changes_what_is_drawn(tmp_path):
    """On a toy whose second level cannot be won, episodes move to the first; without a curriculum they do not."""

    class OneSided(LineWorld):
        def _finish(self, done, success):
            return super()._finish(done, success & (self.walkers["level"] == 0))

    counts, weights = weights_drawn(tmp_path, "progress", OneSided, curriculum="progress", learning_rate=1e-6)
    even, none = weights_drawn(tmp_path, "even", OneSided, learning_rate=1e-6)
    assert none == ["", ""]
    assert sum(map(float, weights)) == pytest.approx(1.0)
    assert float(weights[0]) > 2 * float(weights[1])
    assert counts[0] / counts[1] > 1.5 * even[0] / even[1]


def test_statistics_are_nan_before_a_long_episode_could_have_ended():
    statistics = EpisodeStatistics(("a",), window=1, longest=3)
    for known in (False, False, True, True):
        statistics.vector_steps += 1
        assert statistics.add(ended((0, -1, True))) == 1
        assert np.isfinite(statistics.summary()["success_rate"]) == known
        assert statistics.solved(1.0) == known


def test_statistics_keep_the_last_episodes_of_each_level():
    statistics = EpisodeStatistics(("a", "b"), window=2)
    assert not statistics.solved(0.5)
    for first, second in ((False, True), (True, True), (True, False)):
        assert statistics.add(ended((0, -1, first), (1, -1, second))) == 2
    assert statistics.add(ended()) == 0
    assert statistics.means("success").tolist() == [1.0, 0.5]
    assert statistics.summary()["min_success_rate"] == 0.5
    assert statistics.solved(0.5)
    assert not statistics.solved(0.6)


def test_the_log_keeps_the_episodes_that_ended_in_order():
    log = EpisodeLog(4)
    columns = {
        "level": np.array([1, 0, 1]),
        "start": np.array([-1, -1, 4]),
        "outcome": np.array([WON, PLAYING, DIED]),
        "episode_return": np.array([1.5, 9.0, -1.0]),
        "episode_frames": np.array([8, 4, 12]),
    }
    for step, ended in ((3, [True, False, True]), (5, [False, False, True])):
        log.add(np.array(ended), columns, step)
    first, last = (1.5, 8, 1, -1, True), (-1.0, 12, 1, 4, False)
    assert log.episodes.tolist() == [first, last, last]
    assert log.places.tolist() == [[3, 0], [3, 2], [5, 2]]
    log.clear()
    assert len(log.episodes) == 0


def test_statistics_count_episodes_from_the_start_of_a_level_only():
    statistics = EpisodeStatistics(("a", "b"), window=4)
    assert statistics.add(ended((0, -1, False), (0, 3, True), (1, 5, True))) == 3
    assert statistics.counts.tolist() == [1, 0]
    assert statistics.means("success").tolist()[0] == 0.0
    assert np.isnan(statistics.means("success")[1])
    statistics.add(ended((0, -1, True)))
    assert statistics.means("success")[0] == 0.5, "the negative control: episodes from the start do count"


def test_backward_starts_in_a_run(tmp_path):
    """With start states most episodes begin near the exit, so more succeed; the curve does not count them."""
    fields = {"levels": LEVELS, "max_frames": 400, "learning_rate": 1e-6, "total_timesteps": 32 * 16 * 20}
    seen = {}
    for name, starts in (("starts", ("known",)), ("plain", ())):
        result = train(config(tmp_path, name=name, starts=starts, **fields))
        seen[name] = contents(result.checkpoint), result
        table = list(csv.DictReader((tmp_path / name / "levels.csv").open()))
        seen[name] += (sum(int(row["episodes"]) for row in table),)
    (saved, result, counted), (_, plain, all_counted) = seen["starts"], seen["plain"]
    assert all_counted == plain.counters.episodes
    assert 0 < counted < 0.6 * result.counters.episodes
    assert sorted(saved["selection"]) == ["starts"]
    assert saved["environments"] != seen["plain"][0]["environments"]


def test_starts_are_set_in_every_group_and_follow_success():
    environment = config(".", levels=LEVELS, max_frames=400).evaluated_environment
    groups = [make_environments(environment, 40) for _ in range(2)]
    starts = run_starts(environment, ("known",), Planner())
    selection = EpisodeSelection(groups, starts=starts)
    for group in groups:
        _, info = group.reset(seed=0)
        begun = set(info["start"].tolist())
        assert begun == {-1, 15, 31}, "the last of sixteen states of each level, and the start"
    selection.update([ended(*[(0, 15, True)] * 20), ended()])
    assert set(groups[1].reset(seed=0)[1]["start"].tolist()) == {-1, 14, 15, 31}
    twin = EpisodeSelection([make_environments(environment, 40)], starts=starts)
    assert twin.state()["starts"]["ahead"].tolist() == [16, 16]
    twin.restore(selection.state())
    assert twin.state()["starts"]["ahead"].tolist() == [15, 16]


@pytest.mark.parametrize("curriculum", ["even", "progress"])
def test_every_level_gets_as_many_environments(tmp_path, curriculum):
    """Negative control: with a curriculum the levels change from episode to episode."""
    settings = config(tmp_path, levels=LEVELS, max_frames=100, curriculum=curriculum)
    with begun_run(settings) as run:
        seen = []
        for _ in range(3):
            collect_rollout(run)
            seen.append(np.concatenate([collector.levels for collector in run.collectors]))
    alternating = np.arange(settings.num_envs) % 2
    assert all((levels == alternating).all() for levels in seen) == (curriculum == "even")
