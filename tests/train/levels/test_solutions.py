"""Solutions of the levels of a run: recorded, known, of mirror images, planned."""

import shutil
from typing import Any

import numpy as np
import pytest

from nclone_env import NPlusPlusEnv, NPlusPlusVectorEnv
from nclone_env.config import EnvironmentConfig, ObservationConfig
from nclone_env.env import WON, playable_levels
from nclone_env.errors import ConfigError, InputsError, SnapshotError, UnknownLevelError
from nclone_env.game import CELEBRATING, INPUT_RIGHT
from nclone_env.level import Level, build_level, hall_tiles, known_solutions, load_levels, mirrored, pack
from nclone_env.level.catalog import levels_folder
from nclone_env.plan.solver import solve
from nclone_env.replay.recording import Recording
from nclone_env.sim.trajectory import simulate
from nclone_env.train import Hooks, StartStates, recorded_solutions, start_states
from nclone_env.train.levels.curriculum import BackwardStarts
from nclone_env.train.levels.solutions import Planner, find, mirrored_solutions, run_starts

from ..runs import config

LEVELS = ("first-steps/06-hop", "hazards/02-minefield")
CONFIG = EnvironmentConfig(levels=LEVELS, observations=("game_state", "reachability"), frame_skip=4)
SOLUTIONS = {name: known_solutions()[name] for name in LEVELS}


def test_solutions_of_recordings_and_known_ones(tmp_path):
    levels = pack(load_levels(LEVELS))
    known = known_solutions()
    longer = Recording.of(levels.levels[0], known[LEVELS[0]] + bytes(900))  # what follows the exit is no matter
    longer.save(tmp_path / "hop.replay")
    file = str(tmp_path / "hop.replay")
    assert list(find(levels, [file], 400, Planner())) == [LEVELS[0]]
    both = find(levels, ["known", file], 400, Planner())
    assert sorted(both) == sorted(LEVELS)
    assert both[LEVELS[0]].tobytes() == known[LEVELS[0]], "an array: a recording takes precedence"
    assert both[LEVELS[1]] == known[LEVELS[1]]
    with pytest.raises(ConfigError, match="starts: expected recordings that reach the exit of a training level"):
        run_starts(EnvironmentConfig(levels=LEVELS[1:], max_frames=400), [file], Planner())


def test_equal_levels_share_their_solutions(tmp_path):
    hop, minefield = load_levels(LEVELS)
    twins = [hop.name, f"{hop.name} (2)", "copy"]
    levels = pack(load_levels([hop.name, minefield, hop.name, Level(hop.raw, "copy")]))
    assert set(levels.names) == {*twins, minefield.name}
    Recording.of(hop, known_solutions()[hop.name]).save(tmp_path / "hop.replay")
    for sources, names in (("known", levels.names), (str(tmp_path / "hop.replay"), twins)):
        found = find(levels, [sources], 400, Planner())
        assert sorted(found) == sorted(names)
        assert len({bytes(found[name]) for name in twins}) == 1
    renamed = pack([minefield, Level(build_level(tiles=hall_tiles((2, 20), (14, 15))).raw, hop.name)])
    assert list(find(renamed, ["known"], 400, Planner())) == [minefield.name], (
        "the negative control: names do not count"
    )
    environment = config(".", levels=(hop.name, hop.name), max_frames=400).evaluated_environment
    assert run_starts(environment, ("known",), Planner()).levels.tolist() == [0] * 16 + [1] * 16


def test_planned_solutions_reach_the_exit_and_are_kept(monkeypatch):
    levels = pack(load_levels(LEVELS))
    planned = find(levels, ["planned"], 400, Planner(2))
    assert sorted(planned) == sorted(LEVELS)
    for level in levels.levels:
        assert simulate(level, planned[level.name]).state[-1] == CELEBRATING
    monkeypatch.setattr("nclone_env.train.levels.solutions.solve", None)
    again = find(pack(load_levels(LEVELS)), ["planned"], 400, Planner())
    assert all(np.array_equal(planned[name], again[name]) for name in LEVELS)
    (alone,) = find(pack(load_levels(LEVELS[1:])), ["planned"], 400, Planner()).values()
    assert np.array_equal(alone, planned[LEVELS[1]]), "other runs share them, whatever their levels"
    with pytest.raises(TypeError):
        find(levels, ["planned"], 399, Planner())


def names_of(levels):
    return tuple(level.name for level in levels)


def test_of_many_levels_a_sample_is_planned_that_does_not_depend_on_the_others(monkeypatch):
    asked: list[tuple[str, ...]] = []

    def solutions(self, levels, max_frames):
        asked.append(tuple(level.raw.digest for level in levels))
        return {level.name: b"\x01" for level in levels}

    monkeypatch.setattr(Planner, "solutions", solutions)
    many = load_levels(("first-steps", "jumps", "hazards"))
    digests = sorted(level.raw.digest for level in many)
    for most in (3, len(many), len(many) + 1):
        monkeypatch.setattr("nclone_env.train.levels.solutions._MOST_PLANNED", most)
        for levels in (many, many[::-1]):
            found = find(pack(levels), ["planned"], 400, Planner())
            order = [level.raw.digest for level in levels if level.raw.digest in digests[:most]]
            assert asked.pop() == tuple(order)
            assert len(found) == min(most, len(many))
    monkeypatch.setattr("nclone_env.train.levels.solutions._MOST_PLANNED", 1)
    known = find(pack(many), ["known", "planned"], 5400, Planner())
    assert len(known) == len(many)
    assert not asked, "what is solved already is no part of the sample"


def test_only_what_nothing_else_solves_is_planned(monkeypatch):
    levels = playable_levels(EnvironmentConfig(levels=LEVELS, mirrored=True))
    asked = []

    def plan(planner, rest, max_frames):
        asked.append(names_of(rest))
        return {name: known_solutions()[name] for name in names_of(rest) if name in known_solutions()}

    monkeypatch.setattr(Planner, "solutions", plan)
    short = len(known_solutions()[LEVELS[0]])
    found = find(levels, ["known", "planned"], short, Planner())
    assert asked == [(LEVELS[1],)], "the first level and its image are known, the second image follows from its level"
    assert set(found) == set(levels.names)
    asked.clear()
    find(levels, ["planned"], short, Planner())
    assert asked == [LEVELS], "the negative control"
    asked.clear()
    monkeypatch.setattr("nclone_env.train.levels.solutions.mirrored_solutions", lambda levels, found: {})
    find(levels, ["planned"], short, Planner())
    assert asked == [LEVELS, tuple(f"{name} mirrored" for name in LEVELS)], "what its level does not solve is planned"
    monkeypatch.setattr(Planner, "solutions", lambda planner, rest, max_frames: asked.append(names_of(rest)) or {})
    asked.clear()
    with pytest.raises(ConfigError, match="starts: expected recordings that reach the exit"):
        find(levels, ["planned"], short, Planner())
    assert asked == [LEVELS], "the images of levels that are not solved are not planned"


def test_levels_that_a_search_does_not_solve_are_left_out(monkeypatch):
    levels, budgets = pack(load_levels(LEVELS)), []

    def search(level, *, frames, frames_to_first, **options):
        budgets.append((frames, frames_to_first))
        most = frames_to_first if level.name == LEVELS[0] else 1
        return solve(level, frames=min(frames, most), frames_to_first=most, **options)

    monkeypatch.setattr("nclone_env.train.levels.solutions.solve", search)
    monkeypatch.setenv("NCLONE_ENV_LEVEL_CACHE_MB", "0")
    assert list(Planner().solutions(levels.levels, 400)) == [LEVELS[0]]
    assert budgets == [(200_000, 1_200_000)] * 2


def test_a_longer_search_ends_with_its_first_solution(monkeypatch):
    found = []

    def search(level, *, frames, **options):
        found.append(solve(level, frames=1000, **options))
        return found[-1]

    monkeypatch.setattr("nclone_env.train.levels.solutions.solve", search)
    monkeypatch.setenv("NCLONE_ENV_LEVEL_CACHE_MB", "0")
    levels = pack(load_levels(LEVELS[1:]))
    (inputs,) = Planner().solutions(levels.levels, 400).values()
    assert simulate(levels.levels[0], inputs).state[-1] == CELEBRATING
    (longer,) = found
    assert np.array_equal(longer.inputs, inputs)
    assert 1000 < longer.simulated < 200_000, "it is an easy level"
    (again,) = Planner(2).solutions(levels.levels, 400).values()
    assert np.array_equal(again, inputs), "the same each time"


def test_recordings_that_reach_the_exit_are_solutions():
    levels = load_levels(LEVELS)
    hop, minefield = (Recording.of(level, SOLUTIONS[level.name]) for level in levels)
    longer = Recording.of(levels[0], SOLUTIONS[LEVELS[0]] + bytes(5))
    lost = Recording.of(levels[1], bytes([2]) * 300)
    forged = Recording(minefield.level, minefield.inputs, "0" * 16)
    elsewhere = Recording.of("first-steps/01-walk", known_solutions()["first-steps/01-walk"])
    found = recorded_solutions(levels, [longer, lost, forged, elsewhere, hop])
    assert list(found) == [LEVELS[0]]
    assert found[LEVELS[0]].tobytes() == SOLUTIONS[LEVELS[0]], "what follows the exit does not count"
    assert set(recorded_solutions(levels, [hop, minefield])) == set(LEVELS)
    assert start_states(CONFIG, recorded_solutions(levels, [hop, minefield]), 2).levels.tolist() == [0, 0, 1, 1]


def test_recordings_are_measured_by_the_frame_that_wins():
    levels, inputs = load_levels(["first-steps/01-walk"]), known_solutions()["first-steps/01-walk"]
    slower = Recording.of(levels[0], bytes(1) + inputs)
    assert recorded_solutions(levels, [slower])[levels[0].name].tobytes() == slower.inputs.tobytes(), "a solution too"
    longer = Recording.of(levels[0], inputs + bytes(50))
    for order in ([slower, longer], [longer, slower]):
        assert recorded_solutions(levels, order)[levels[0].name].tobytes() == inputs


def test_solutions_serve_mirror_images_too():
    levels = load_levels(LEVELS)
    images = [mirrored(level) for level in levels]
    found = mirrored_solutions(pack([*levels, *images]), SOLUTIONS)
    assert sorted(found) == [image.name for image in images]
    both = start_states(CONFIG.replace(mirrored=True), {**SOLUTIONS, **found}, 2)
    assert both.levels.tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    for image in images:
        plain = np.frombuffer(SOLUTIONS[image.name.removesuffix(" mirrored")], np.uint8)
        assert simulate(image, found[image.name]).state[-1] == CELEBRATING
        assert CELEBRATING not in simulate(image, plain).state, "the negative control: they have to be exchanged"
    back = mirrored_solutions(pack([*levels, *images]), found)
    assert {name: inputs.tobytes() for name, inputs in back.items()} == SOLUTIONS
    lost = {LEVELS[0]: bytes([INPUT_RIGHT]) * 50}
    assert mirrored_solutions(pack([*levels, *images]), lost) == {}, "only what wins"


def test_levels_of_equal_file_names_have_their_own_solutions(tmp_path):
    for folder, level in zip("ab", LEVELS, strict=True):
        (tmp_path / folder).mkdir()
        shutil.copy(levels_folder() / f"{level}.toml", tmp_path / folder / "one.toml")
    settings = CONFIG.replace(levels=tuple(str(tmp_path / folder / "one.toml") for folder in "ab"))
    levels = playable_levels(settings)
    assert levels.names == ("a/one.toml", "b/one.toml")
    recordings = [Recording.of(level, SOLUTIONS[level]) for level in LEVELS]
    found = recorded_solutions(levels.levels, recordings)
    assert {name: inputs.tobytes() for name, inputs in found.items()} == dict(
        zip(levels.names, SOLUTIONS.values(), strict=True)
    )
    assert start_states(settings, found, 2).levels.tolist() == [0, 0, 1, 1]


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


def snapshots(config: EnvironmentConfig, starts: StartStates) -> tuple[bytes, ...]:
    """Return a snapshot of an environment that began in each of the start states."""
    env, taken = NPlusPlusVectorEnv(config, 1), []
    for number, level in enumerate(starts.levels):
        env.set_starts(starts.states, 1.0 * (np.arange(len(starts.levels)) == number))
        env.assign_levels([level])
        assert env.reset(seed=0)[1]["start"] == [number]
        taken.append(env.get_state(0))
    return tuple(taken)


def along(level: str, inputs: Any, count: int, **fields: Any) -> dict[int, bytes]:
    """Return the snapshots along a solution of one level by frame."""
    config = CONFIG.replace(**fields)
    starts = start_states(config, {level: inputs}, count)
    return dict(zip(starts.frames.tolist(), snapshots(config, starts), strict=True))


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


def test_snapshots_do_not_depend_on_the_solutions_that_are_played_together():
    levels = tuple(known_solutions())[:5]
    solutions = {name: known_solutions()[name] for name in levels}
    config, played = CONFIG.replace(levels=levels, max_frames=2000), []
    hooks = Hooks(on_level=lambda what, done, count: played.append((what, done, count)))
    together = start_states(config, solutions, 3, hooks)
    alone = [start_states(config, {name: solutions[name]}, 3) for name in levels]
    ninjas = np.concatenate([each.states.arrays.ninjas["x"] for each in alone])
    assert ninjas.tolist() == together.states.arrays.ninjas["x"].tolist()
    assert played == [("solutions played", done, 5) for done in range(1, 6)]
    assert len(set(snapshots(config, together))) == len(together.states) == 15


def test_start_states_are_deterministic():
    orders = SOLUTIONS, dict(reversed(SOLUTIONS.items()))
    one, two = (snapshots(CONFIG, start_states(CONFIG, solutions, 3)) for solutions in orders)
    assert one == two
    assert one != snapshots(CONFIG, start_states(CONFIG, SOLUTIONS, 4))[:6]
    assert len(set(one)) == 6


def test_start_states_of_other_levels_are_refused():
    """Also by environments that end earlier; nothing is changed."""
    starts = start_states(CONFIG, SOLUTIONS, 3)
    last = int(starts.frames.max())
    for other, message in (
        (CONFIG.replace(levels=LEVELS[::-1]), "states: levels: expected those of this environment, in this order"),
        (CONFIG.replace(max_frames=last), f"states: ninjas.frame: expected less than max_frames, {last}, got {last}"),
    ):
        envs = NPlusPlusVectorEnv(other, 2)
        with pytest.raises(SnapshotError, match=message):
            envs.set_starts(starts.states)
        assert envs.reset(seed=0)[1]["start"].tolist() == [-1, -1]
    NPlusPlusVectorEnv(CONFIG.replace(max_frames=last + 1), 2).set_starts(starts.states)


def test_environments_share_start_states_but_not_shares():
    starts = start_states(CONFIG, SOLUTIONS, 3)
    one, two = (NPlusPlusVectorEnv(CONFIG, 4) for _ in range(2))
    one.set_starts(starts.states, 1.0)
    two.set_starts(starts.states, 0.0)
    assert (one.reset(seed=0)[1]["start"] >= 0).all()
    assert (two.reset(seed=0)[1]["start"] == -1).all()


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
    seen = [starts.state()["ahead"].tolist()]
    _, info = envs.reset(seed=4)
    ends = stops = np.zeros(16, bool)
    for _ in range(10_000):
        began, over = info["frames"] == 0, ends | stops
        place = np.where(began, info["episode_frames"], place + 1)
        gives_up[began] = rng.random(began.sum()) < 0.25
        if over.any() and starts.update(info["start"][over], info["level"][over], info["outcome"][over] == WON):
            envs.set_start_shares(starts.shares())
            seen.append(starts.state()["ahead"].tolist())
        if not starts.state()["ahead"].any():
            break
        actions = np.where(gives_up, 0, table[info["level"], np.minimum(place, 399)])
        _, _, ends, stops, info = envs.step(actions)
    assert seen[-1] == [0, 0]
    assert seen[0] == [3, 3]
