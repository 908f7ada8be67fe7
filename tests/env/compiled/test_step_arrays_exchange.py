"""Other levels for running environments: episodes under way go on as if nothing had happened, new ones play others."""

import numpy as np
import pytest

import nclone_env.env.batch as batch_module
import nclone_env.env.compiled.step_arrays as exchange_module
from nclone_env import NPlusPlusVectorEnv
from nclone_env.errors import ConfigError, SnapshotError, UnknownLevelError, UnsupportedLevelError
from nclone_env.level.build import build_room, everything

from .. import peek

OLD, NEW = ("first-steps/06-hop", "hazards/02-minefield"), ("jumps", "hazards/02-minefield", "first-steps/01-walk")
VECTORS = "game_state", "locals", "entity_states", "reachability", "free_motion", "action_outcomes"
EVERYTHING = (*VECTORS, "action_mask", "player_frame")
COUNT = 12
EVIL = [
    build_room("exit 160 57", "exit_switch 150 57", *["evil_ninja 60 57"] * count, title=f"{count} evil ninjas")
    for count in (1, 3)
]


def make(levels=OLD, observations=EVERYTHING, mode="SameStep", **fields):
    fields = {"max_frames": 160, **fields}
    envs = NPlusPlusVectorEnv(None, COUNT, levels=levels, observations=observations, autoreset_mode=mode, **fields)
    envs.reset(seed=3)
    return envs


def actions(step):
    return np.random.default_rng(step).integers(0, 6, COUNT)


def last_observations(info, index):
    """Return the last observations of an environment whose episode ended; there is a row for each that did."""
    row = np.count_nonzero(info["_final_obs"][:index])
    return {name: array[row] for name, array in info["final_obs"].items()}


def step_until_first_ends(exchanged, untouched, steps=60):
    """Step both; compare each environment until the first end of its episode; return what began afterwards."""
    going, begun = np.ones(COUNT, bool), []
    for step in range(10, 10 + steps):
        (seen, rewards, *ends, info), (seen_2, rewards_2, *ends_2, info_2) = (
            envs.step(actions(step)) for envs in (exchanged, untouched)
        )
        over = ends_2[0] | ends_2[1]
        assert np.array_equal(rewards[going], rewards_2[going])
        for mine, theirs in zip(ends, ends_2, strict=True):
            assert np.array_equal(mine[going], theirs[going])
        alive = going & ~over
        for name, array in seen_2.items():
            assert np.array_equal(seen[name][alive], array[alive]), (step, name)
        for index in np.flatnonzero(going & over & ("final_obs" in info_2)):
            for name, last in last_observations(info, index).items():
                assert np.array_equal(last, last_observations(info_2, index)[name]), (step, index, name)
        names, names_2 = exchanged.level_names, untouched.level_names
        assert [names[info["level"][i]] for i in np.flatnonzero(alive)] == [
            names_2[info_2["level"][i]] for i in np.flatnonzero(alive)
        ]
        begun += [names[info["level"][i]] for i in np.flatnonzero(~going & (info["episode_steps"] > 0))]
        going &= ~over
    assert not going.any()
    return begun


@pytest.mark.parametrize("fields", [{}, {"num_threads": 3}, {"observation": {"frame_stack": 3}}, {"mode": "NextStep"}])
def test_episodes_under_way_go_on_and_new_ones_play_the_new_levels(fields):
    exchanged, untouched = make(**fields), make(**fields)
    for step in range(10):
        for envs in (exchanged, untouched):
            envs.step(actions(step))
    exchanged.exchange_levels(NEW)
    assert exchanged.level_names[-1] == "first-steps/06-hop"  # still played; the minefield is among the new ones
    assert len(exchanged.level_names) == 8
    begun = step_until_first_ends(exchanged, untouched)
    assert "first-steps/06-hop" not in begun
    assert len(set(begun)) > 4


def test_levels_that_are_not_played_any_more_leave_with_the_next_exchange():
    envs = make()
    envs.exchange_levels("jumps")
    for step in range(60):
        envs.step(actions(step))
    envs.exchange_levels(("jumps", "first-steps/01-walk"))
    assert len(envs.level_names) == 6
    assert envs.config.levels == ("jumps", "first-steps/01-walk")


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_evil_ninjas_keep_following(order):
    """The trails of the two level sets are rings of different sizes."""
    levels = [EVIL[number] for number in order]
    exchanged, untouched = (
        make(levels=levels[:1], observations=("game_state", "entity_states"), max_frames=1200) for _ in range(2)
    )
    for step in range(60):
        for envs in (exchanged, untouched):
            envs.step(np.full(COUNT, 2 if step < 30 else 1))
    exchanged.exchange_levels(levels[1:])
    assert exchanged.worlds.rooms["trail"]["used"][-1] == 3 * 120 - 1
    for step in range(60, 120):
        seen, seen_2 = (envs.step(np.full(COUNT, 1 + step % 2))[0] for envs in (exchanged, untouched))
        assert np.array_equal(seen["entity_states"], seen_2["entity_states"])
        assert np.array_equal(seen["game_state"], seen_2["game_state"])


def test_all_kinds_of_entities_go_on():
    level = everything()
    exchanged, untouched = (make(levels=(level,), observations=("game_state", "entity_states")) for _ in range(2))
    exchanged.exchange_levels("first-steps")
    step_until_first_ends(exchanged, untouched)


def test_weights_assignments_and_starts_are_dropped():
    envs = make()
    envs.set_starts([envs.get_state(0)])
    envs.assign_levels([0] * COUNT)
    before = envs.get_state(0)
    envs.exchange_levels("first-steps")
    assert np.all(peek.step_arrays(envs).episodes["own_level"] == -1)
    assert not len(peek.step_arrays(envs).starts.starts)
    with pytest.raises(SnapshotError, match="another, with digest"):
        envs.set_state(0, before)
    envs.set_state(0, envs.get_state(1))
    envs.gather(np.zeros(COUNT, int))


def levels_begun(envs, resets=20):
    return {envs.level_names[number] for _ in range(resets) for number in envs.reset()[1]["level"]}


def test_no_weight_begins_episodes_on_levels_that_were_kept():
    envs = make(observations="game_state")
    envs.exchange_levels(("jumps/01-stairs", "first-steps/01-walk"))
    assert set(envs.level_names[2:]) == set(OLD)
    kept = 2 + np.arange(COUNT) % 2
    for wrong in ([1, 1, 0, 1], [1, 1, 0], [1]):
        with pytest.raises(ConfigError, match="each of the 2 levels that episodes begin on, got shape"):
            envs.set_level_weights(wrong)
    for call in (
        lambda: envs.set_level_weights({OLD[0]: 1}),
        lambda: envs.assign_levels(kept),
        lambda: envs.reset(options={"level": kept}),
        lambda: envs.reset(options={"level": OLD[1]}),
    ):
        with pytest.raises(UnknownLevelError, match="expected a name or an index below 2, got"):
            call()
    envs.set_level_weights()
    assert levels_begun(envs) == {"jumps/01-stairs", "first-steps/01-walk"}
    for weights in ([0, 1], [0, 1, 0, 0]):
        envs.set_level_weights(weights)
        assert levels_begun(envs) == {"first-steps/01-walk"}
    envs.set_level_weights({"jumps/01-stairs": 2.5})
    assert levels_begun(envs) == {"jumps/01-stairs"}


def test_levels_that_left_can_be_drawn_again_when_they_come_back():
    envs = make(observations="game_state")
    envs.exchange_levels("jumps/01-stairs")
    envs.exchange_levels(OLD)
    envs.set_level_weights()
    assert levels_begun(envs) == set(OLD)


@pytest.mark.parametrize("gymnasium_infos", [False, True])
def test_info_names_the_level_of_the_world_where_that_of_the_result_has_left(gymnasium_infos):
    """In same-step mode results are those of episodes that ended, on levels that no world is on any more."""
    envs = make(OLD, "game_state", max_frames=4, gymnasium_infos=gymnasium_infos)
    envs.reset(options={"level": 0})
    envs.assign_levels([1] * COUNT)
    envs.step(np.zeros(COUNT, int))  # all episodes end on level 0 and begin on level 1
    played = OLD[0] if gymnasium_infos else 0
    assert envs.copy_world(0, 1)[1]["level"] == played  # the control: results are of the last step
    envs.exchange_levels(NEW)
    assert len(envs.level_names) == 7  # nothing is kept: the minefield is among the new levels
    new = envs.level_names.index("hazards/02-minefield")
    expected = "hazards/02-minefield" if gymnasium_infos else new
    assert envs.worlds.ninjas["level"].tolist() == [new] * COUNT
    assert envs.copy_world(0, 1)[1]["level"] == expected
    _, info = envs.reset(options={"reset_mask": np.arange(COUNT) == 0})
    assert gymnasium_infos or info["level"][1:].tolist() == [new] * (COUNT - 1)


def test_info_keeps_the_level_of_the_result_where_it_stays():
    envs = make(("jumps/01-stairs", "hazards/02-minefield"), "game_state", max_frames=4)
    envs.reset(options={"level": 0})
    envs.assign_levels([1] * COUNT)
    envs.step(np.zeros(COUNT, int))
    envs.exchange_levels(("hazards/02-minefield", "jumps/01-stairs"))
    assert envs.copy_world(0, 1)[1]["level"] == 1


def test_before_the_first_reset():
    envs = NPlusPlusVectorEnv(None, 4, levels=OLD, observations="game_state")
    envs.exchange_levels("jumps/01-stairs")
    assert envs.level_names == ("jumps/01-stairs",)  # no world is kept on a level that was never begun
    _, info = envs.reset(seed=0)
    assert {envs.level_names[number] for number in info["level"]} == {"jumps/01-stairs"}


def test_the_bytes_of_records_are_kept_with_those_between_their_fields():
    """Snapshots contain them, so they would differ from run to run."""
    envs = make(observations="game_state")
    for records in (peek.step_arrays(envs).episodes, peek.step_arrays(envs).results):
        records.view(np.uint8).reshape(COUNT, -1)[:, -1] = 171  # behind the last field
    before = peek.step_arrays(envs).results.tobytes()
    envs.exchange_levels(OLD)
    assert peek.step_arrays(envs).results.tobytes() == before
    assert (peek.step_arrays(envs).episodes.view(np.uint8).reshape(COUNT, -1)[:, -1] == 171).all()


@pytest.mark.parametrize("fault", [MemoryError, KeyboardInterrupt])
@pytest.mark.parametrize(
    "place",
    [
        (exchange_module, "make_growing_worlds"),
        (exchange_module, "copy_world"),
        (exchange_module, "level_arrays"),
        (batch_module, "no_observations"),
        (batch_module, "StepPass"),
    ],
    ids=lambda place: place[1],
)
def test_a_fault_on_the_way_changes_nothing(monkeypatch, place, fault):
    exchanged, untouched = (make(observations="game_state") for _ in range(2))
    for envs in (exchanged, untouched):
        envs.assign_levels([0, 1, None] * (COUNT // 3))
        envs.set_level_weights([1, 2])
        envs.step(actions(0))

    def fail(*_, **__):
        raise fault

    with monkeypatch.context() as patch:
        patch.setattr(*place, fail)
        with pytest.raises(fault):
            exchanged.exchange_levels(NEW)
    assert exchanged.config == untouched.config
    assert exchanged.level_names == untouched.level_names
    for index in range(COUNT):
        assert exchanged.get_state(index) == untouched.get_state(index)
    for _ in range(3):
        assert exchanged.reset()[1]["level"].tolist() == untouched.reset()[1]["level"].tolist()
    exchanged.exchange_levels(NEW)  # the control: without the fault it changes all of this
    assert exchanged.level_names[:7] != untouched.level_names
    assert exchanged.get_state(0) != untouched.get_state(0)


def test_faults_change_nothing():
    envs = make()
    names = envs.level_names
    with pytest.raises(UnknownLevelError, match="nowhere"):
        envs.exchange_levels("nowhere")
    with pytest.raises(UnsupportedLevelError, match="has no exit"):
        envs.exchange_levels(build_room())
    with pytest.raises(ConfigError, match="levels"):
        envs.exchange_levels(())
    assert envs.level_names == names
    envs.step(actions(0))
    with pytest.raises(ConfigError, match="the space of 'graph' depends on the levels"):
        make(observations=("graph",)).exchange_levels("jumps")
