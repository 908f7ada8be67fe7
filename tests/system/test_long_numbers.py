"""Counters and sums that are nearly full: the next number is right, or refused; nothing wraps in between.

The tests jump to the place, as no test can play so long.
"""

import numpy as np
import pytest

import nclone_env.machine
from nclone_env import NPlusPlusVectorEnv, simulate
from nclone_env.cli.app import main
from nclone_env.errors import ConfigError, InputsError, MemoryLimitError, RecordingError
from nclone_env.level.build import everything, moving
from nclone_env.replay.recording import MAX_FRAMES, Recording, write_recording
from nclone_env.sim import session as sessions
from nclone_env.sim.session import MOST_FRAMES, Session

from ..env.bases import QUICK_WIN, RIGHT, corridor

PLAYS = {
    "play": lambda session: session.play(bytes(3)),
    "record": lambda session: session.record(bytes(3), 1),
    "tick": lambda session: session.tick(0),
}
DRAW = np.random.default_rng(0).integers(0, 8, 400, dtype=np.uint8).repeat(6)


def future(session: Session) -> bytes:
    """Play on and return everything but the counters of entries."""
    parts = []
    for part in np.split(DRAW, 8):
        frames = session.record(part)
        movers, ninjas = frames.movers.copy(), frames.ninjas.copy()
        movers["order"], ninjas["next_order"] = 0, 0
        parts += [movers.tobytes(), ninjas.tobytes(), frames.entity_states.tobytes()]
    return b"".join(parts)


def far(session: Session, by: int) -> Session:
    """Let all entries that were made in play be so many numbers later."""
    first = len(session.entities())
    for index in range(len(session)):
        ninja, movers = session.worlds.ninjas[index], session[index].movers
        entered = (movers["cell"] >= 0) & (movers["order"] >= first)
        movers["order"][entered] += by
        ninja["next_order"] += by
    return session


@pytest.mark.parametrize("scene", [moving, everything])
def test_entries_into_cells_beyond_their_counter(scene):
    near, late = Session(scene()), Session(scene())
    near.play(DRAW)
    late.play(DRAW)
    entries = int(late.ninja["next_order"])
    assert entries > len(late.entities()) + 20
    far(late, sessions.MOST_ENTRIES)
    played = future(late)
    assert int(late.ninja["next_order"]) < sessions.MOST_ENTRIES
    assert played == future(near)


def test_a_wrong_order_of_entries_is_noticed():
    """The control: with the order of entry reversed, the future is another."""
    near, late = Session(everything()), Session(everything())
    for session in (near, late):
        session.play(DRAW)
    orders = late.worlds.movers["order"]
    orders[:] = np.where(orders >= len(late.entities()), 2**30 - orders, orders)
    late.worlds.ninjas["next_order"] = 2**30
    first = len(late.entities())
    ranks = np.argsort(near.worlds.movers["order"][near.worlds.movers["order"] >= first])
    others = np.argsort(orders[orders >= first])
    assert ranks.tolist() != others.tolist()


def test_entries_of_an_environment_are_renumbered(monkeypatch):
    envs = [NPlusPlusVectorEnv(levels=(everything(),), num_envs=2, max_frames=1_000_000) for _ in range(2)]
    for env in envs:
        env.reset(seed=1)
    many = envs[1]
    assert not many._batch._enters_often  # few movers: 10**6 frames cannot fill the counter
    monkeypatch.setattr("nclone_env.env.batch.MOST_ENTRIES", 1000)
    often = NPlusPlusVectorEnv(levels=(everything(),), num_envs=2, max_frames=1_000_000)
    often.reset(seed=1)
    assert often._batch._enters_often
    often.worlds.ninjas["next_order"] += sessions.MOST_ENTRIES
    for action in DRAW[:200].reshape(100, 2) % 6:
        left, right = envs[0].step(action.astype(np.int64)), often.step(action.astype(np.int64))
        assert left[0]["game_state"].tobytes() == right[0]["game_state"].tobytes()
    assert often.worlds.ninjas["next_order"].max() < sessions.MOST_ENTRIES


@pytest.mark.parametrize("play", PLAYS.values(), ids=PLAYS)
def test_frames_of_a_world_beyond_their_counter(play):
    session = Session(QUICK_WIN, 2)
    session.worlds.ninjas["frame"][1] = MOST_FRAMES - 3
    session.play(bytes(3 if play is PLAYS["tick"] else 2))
    before = session.snapshot(1)
    with pytest.raises(InputsError, match=r"at most 1,073,741,824 frames from the start, got 1,073,741,82[567]; start"):
        play(session)
    assert session.snapshot(1) == before
    session.record(bytes(3), 0)
    session.start()
    session.tick(0)


def test_states_that_do_not_fit_are_refused_before_they_are_made(monkeypatch):
    monkeypatch.setattr(nclone_env.machine, "available_bytes", lambda: 10**9)
    with pytest.raises(MemoryLimitError, match=r"inputs: 100,000,000 need .* GB .* at most [\d,]+ fit"):
        simulate(QUICK_WIN, np.zeros(100_000_000, np.uint8))
    assert len(simulate(QUICK_WIN, bytes(1000))) == 1000


def test_recordings_have_their_limit(monkeypatch):
    assert MAX_FRAMES > 1_000_000  # frames of the longest episode
    monkeypatch.setattr("nclone_env.replay.recording.MAX_FRAMES", 1000)
    write_recording(Recording.of(QUICK_WIN.raw, np.zeros(1000, np.uint8)))
    with pytest.raises(RecordingError, match="at most 1000 frames, got 1001"):
        write_recording(Recording.of(QUICK_WIN.raw, np.zeros(1001, np.uint8)))


def test_long_words_of_inputs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for words in ("3000000000R", "99999R " * 200):
        command = ["replay", "record", "jumps/01-stairs", "--inputs", words, "--output", "a.replay"]
        assert main(command) == 2
        assert len(capsys.readouterr().err.splitlines()) == 1


def test_time_steps_and_training_options_have_room(tmp_path):
    pytest.importorskip("torch")
    from nclone_env.train.config import TrainConfig

    assert TrainConfig.of(total_timesteps=10**12).total_timesteps == 10**12
    with pytest.raises(ConfigError, match="total_timesteps"):
        TrainConfig.of(total_timesteps=10**12 + 1)


@pytest.mark.parametrize("number", [2**30, 2**31 - 2])
def test_an_environment_that_began_very_many_episodes(number):
    """The number of an episode goes on behind the largest one; snapshots are accepted, levels drawn."""
    fields = {"levels": (QUICK_WIN, corridor((3, 126), (4, 86))), "autoreset_mode": "SameStep", "max_frames": 4}
    envs = [NPlusPlusVectorEnv(num_envs=2, **fields) for _ in range(2)]
    for env in envs:
        env.reset(seed=0)
        env._batch.episodes["number"] = number
    drawn = set()
    for step in range(24):
        states = [envs[0].get_state(i) for i in range(2)]
        for i, state in enumerate(states):
            envs[1].set_state(i, state)
        info = [env.step(np.full(2, RIGHT))[4]["level"].tolist() for env in envs]
        assert info[0] == info[1], step
        drawn |= set(info[0])
    assert drawn == {0, 1}
    assert (envs[0]._batch.episodes["number"] != number).all()


@pytest.mark.parametrize("reward", [1e300, -1e300, 2.0**62])
def test_returns_are_kept_as_long_as_they_are_finite(reward):
    env = NPlusPlusVectorEnv(levels=(QUICK_WIN,), num_envs=1, reward={"time": reward}, max_frames=100_000)
    env.reset(seed=0)
    for _ in range(3):
        env.step(np.zeros(1, np.int64))
    state = env.get_state(0)
    env.set_state(0, state)
    assert env.get_state(0) == state
    assert abs(env._batch.episodes["episode_return"][0]) >= 2.9 * abs(reward) / 60
