"""The entity list against a sort of everything, and its velocities against how things really move."""

import numpy as np
import pytest

from nclone_env import NPlusPlusVectorEnv
from nclone_env.game import EXIT, EXIT_SWITCH, GOLD, LOCKED_DOOR, MINE, TRAP_DOOR
from nclone_env.level.build import build_level, everything, moving
from nclone_env.level.level import Level
from nclone_env.obs.spec import ENTITY_STATE
from nclone_env.sim.session import play_worlds
from nclone_env.sim.state import world_at
from profiling.speed.observations import mine_field

from ..env import peek
from ..env.bases import WALK, corridor
from ..naive.entity_list import listed
from .levels import BUILT_IN, compiled, run

PLACES = {feature.name: place for place, feature in enumerate(ENTITY_STATE)}
SINE_LIMIT = 1e-6  # the simulator's own sine against the library's


def make(num_envs, levels, most=32, **fields):
    sizes = {"max_entities": most} | fields.pop("observation", {})
    return NPlusPlusVectorEnv(
        None, num_envs, levels=levels, observations="entity_states", observation=sizes, **{"frame_skip": 1} | fields
    )


def check(envs, observations) -> set[int]:
    """Compare one batch of observations with the oracle; return the kinds that were listed."""
    seen = set()
    for i in range(envs.num_envs):
        level = envs.levels[envs.worlds.ninjas[i]["level"]]
        states, kinds = observations["entity_states"][i], observations["entity_kinds"][i]
        expected = listed(compiled(level), envs.worlds, i)[: len(states)]
        count = int(observations["entity_count"][i, 0])
        assert count == len(expected)
        assert kinds[:count].tolist() == [kind for _, kind, _ in expected]
        rows = np.array([row for _, _, row in expected], np.float64).reshape(count, len(ENTITY_STATE))
        np.testing.assert_allclose(states[:count], rows, rtol=1e-6, atol=SINE_LIMIT)
        assert not states[count:].any()
        assert not kinds[count:].any()
        seen |= set(kinds.tolist())
    return seen - {0}


@pytest.mark.parametrize("most", [1, 5, 32])
def test_built_in_levels(most):
    envs = make(6, BUILT_IN, most, max_frames=120)
    for step, observations in enumerate(run(envs, 300)):
        if step % 5 == 0:
            check(envs, observations)


def test_every_kind_in_its_phases():
    halls = [hall((x, 66)) for hall in (everything, moving) for x in (34, 44, 68, 102, 130)]
    envs, phases = make(len(halls), tuple(halls), 64, max_frames=400), {}
    for step, observations in enumerate(run(envs, 420)):
        if step % 6 == 0:
            check(envs, observations)
        pairs = zip(observations["entity_kinds"].ravel(), observations["entity_states"][..., PLACES["phase"]].ravel())
        for kind, phase in pairs:
            phases.setdefault(int(kind), set()).add(float(phase))
    assert set(phases) == set(range(2, 27)) | {0, 28}
    assert sum(len(values) > 1 for values in phases.values()) >= 10


def test_hundreds_of_mines_and_equal_distances():
    envs = make(1, mine_field(), 128)
    for observations in run(envs, 30):
        check(envs, observations)
    assert observations["entity_count"][0, 0] == 128
    pile = make(1, corridor((EXIT, 60), (EXIT_SWITCH, 30), (GOLD, 50), (MINE, 50), (GOLD, 50), (MINE, 34)), 4)
    observations = pile.reset()[0]
    assert observations["entity_kinds"][0].tolist() == [MINE, MINE, GOLD, GOLD]  # 34 and 50 are equally near
    assert observations["entity_states"][0, :, 0].tolist() == pytest.approx([x * 6 / 528 for x in (8, -8, 8, 8)])


def test_doors_and_their_switches_are_listed_apart():
    envs = make(1, everything(spawn=(60, 67)), 64)
    observations = envs.reset()[0]
    kinds = observations["entity_kinds"][0].tolist()
    assert [kinds.count(kind) for kind in range(5, 10)] == [1, 1, 1, 1, 1]
    slots = envs.level_set.entities_of(0)["type"]
    for kind in (LOCKED_DOOR, TRAP_DOOR):
        world_at(envs.worlds, 0).entity_states[np.flatnonzero(slots == kind)[0]] = 1
    peek.observe(envs, 0, observations)
    check(envs, observations)
    kinds = observations["entity_kinds"][0].tolist()
    assert [kinds.count(kind) for kind in range(5, 10)] == [1, 0, 0, 1, 0]
    assert observations["entity_states"][0, kinds.index(TRAP_DOOR), PLACES["solid"]] == 1


def test_velocities_are_how_far_things_move():
    """What steers, turns or stops in the frame differs; most frames of most things are none of these."""
    agreeing: dict[int, list[bool]] = {}
    for x in (34, 68, 130):
        for hall in (everything, moving):
            compare_velocities(hall((x, 66)), 250, agreeing)
    compare_velocities(unseen(), 250, agreeing)
    assert set(agreeing) >= {12, 13, 14, 15, 16, 17, 18, 20, 22, 23, 25, 26, 28}
    for kind, results in agreeing.items():
        assert np.mean(results) > 0.8, (kind, np.mean(results), len(results))


def unseen() -> Level:
    """Return a corridor, and drones that shoot in a room without view of it."""
    tiles = WALK.raw.tiles.copy()
    tiles[2:6, 4:30] = 0
    entities = ("exit 126 50", "exit_switch 86 50", "chaingun_drone 40 18", "laser_drone 60 30 4 1")
    return build_level(*entities, tiles=tiles, spawn=(42, 50), title="unseen")


def compare_velocities(level, frames, agreeing) -> None:
    """Play at random; note for every moving thing whether it moved by its velocity."""
    envs = make(1, level, 128, max_frames=10_000)
    observations = envs.reset(seed=1)[0]
    draw = np.random.default_rng(3)
    for frame in range(frames):
        if frame % 20 == 0:
            inputs = int(draw.choice([0, 4, 2, 5, 3]))
        if envs.worlds.ninjas["state"][0] >= 6:
            observations = envs.reset()[0]
        ninja = np.array([envs.worlds.ninjas[name][0] for name in "xy"])
        before, movers = listed(compiled(level), envs.worlds, 0), world_at(envs.worlds, 0).movers.copy()
        play_worlds(envs.level_set.arrays, envs.worlds, np.array([[inputs]], np.uint8))
        for place, (_, kind, row) in enumerate(before):  # drones may turn in their first frame
            velocity, offset = observations["entity_states"][0, place, 2:4] * 8.0, np.array(row[:2]) * 528
            if envs.worlds.ninjas["frame"][0] == 1 or not velocity.any() or np.abs(offset).max() >= 528:
                continue
            spot = ninja + offset
            number = int(np.hypot(movers["x"] - spot[0], movers["y"] - spot[1]).argmin())
            moved = [world_at(envs.worlds, 0).movers[name][number] - movers[name][number] for name in "xy"]
            agreeing.setdefault(kind, []).append(bool(np.abs(moved - velocity).max() < 0.15))
        peek.observe(envs, 0, observations)


def test_every_feature_keeps_its_bounds():
    low, high = np.array([(feature.low, feature.high) for feature in ENTITY_STATE]).T
    envs = make(2, (everything(), corridor((EXIT, 126), (EXIT_SWITCH, 86), ninja=250, height=250)), frame_skip=20)
    for observations in run(envs, 120):
        assert observations in envs.observation_space
        assert (observations["entity_states"] >= low).all()
        assert (observations["entity_states"] <= high).all()
