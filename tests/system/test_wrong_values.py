"""Public functions with arguments of another type, or far out of range: one error of the package, which names them.

Every public function, and every public method with such arguments, is called with wrong values in place of each
argument. What is accepted of these is accepted on purpose, as a file of this name or a number that large is.
"""

import importlib
import inspect
import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import pytest

import nclone_env
from nclone_env import (
    EnvironmentConfig,
    NPlusPlusEnv,
    NPlusPlusVectorEnv,
    ObservationFunction,
    benchmark,
    generate,
    jobs,
    level,
    load_level,
    load_policy,
    memory,
    plan,
    replay,
    train,
)
from nclone_env.errors import ConfigError, NcloneError, Within, checked

WRONG = {
    "text": "600",
    "None": None,
    "a fraction": 1.5,
    "a negative number": -1,
    "a number that is too large": 10**30,
    "nan": math.nan,
    "an array": np.zeros(2),
    "an array of no dimension": np.array(3.5),
    "an object": object(),
    "bytes": b"x",
    "a list": [],
    "a mapping": {},
    "no name of a file": "\ud800\0",
}
WALK = "first-steps/01-walk"
SEEN = {"levels": WALK, "observations": "game_state"}


def calls(tmp_path: Path) -> Mapping[str, tuple[Callable[..., Any], dict[str, Any]]]:
    """Return functions with arguments that are right; a search stops at once."""
    walk = load_level(WALK)
    recording = replay.Recording.of(walk, b"\2" * 30)
    recording.save(tmp_path / "a.replay")
    envs, env = NPlusPlusVectorEnv(num_envs=4, num_threads=1, **SEEN), NPlusPlusEnv(**SEEN)
    envs.reset(seed=0)
    env.reset(seed=0)
    track = benchmark.load_track("Builtin-v1")
    picture = np.zeros((32, 32, 3), np.uint8)
    budget = {"seconds": 1.0, "frames": 100, "frames_to_first": 0, "max_frames": 100, "hold": 1, "memory": 600_000_000}
    how = {"objective": "time", "seed": 0, "threads": 1, "start": None}
    asked = {"on_solution": None, "stop": lambda: True, "clock": time.perf_counter}
    of_generator = {"seed": 0, "split": "train", "difficulty": (0, 100)}
    return {
        "solve": (nclone_env.solve, {"level": walk, **budget, **how, **asked}),
        "simulate": (nclone_env.simulate, {"level": walk, "inputs": bytes(3), "entities": False}),
        "load_level": (load_level, {"source": WALK}),
        "create_environment": (
            nclone_env.create_environment,
            {"config": None, "reward_function": None, "observation_function": None, **SEEN},
        ),
        "create_vector_environment": (
            nclone_env.create_vector_environment,
            {"num_envs": 1, "num_threads": 1, "gymnasium_infos": False, "max_episode_steps": None, **SEEN}
            | {"config": None, "device": "cpu", "autoreset_mode": "NextStep"},
        ),
        "ObservationFunction": (
            ObservationFunction,
            {"function": lambda world, out: None, "size": 3, "low": 0.0, "high": 1.0, "name": "mine"},
        ),
        "NPlusPlusVectorEnv.reset": (envs.reset, {"seed": 1, "options": None}),
        "NPlusPlusVectorEnv.get_state": (envs.get_state, {"index": 0}),
        "NPlusPlusVectorEnv.set_state": (envs.set_state, {"index": 0, "state": envs.get_state(0)}),
        "NPlusPlusVectorEnv.copy_world": (envs.copy_world, {"source": 0, "target": 1}),
        "NPlusPlusVectorEnv.gather": (envs.gather, {"indices": [0, 1, 2, 3]}),
        "NPlusPlusVectorEnv.reseed": (envs.reseed, {"seed": 3}),
        "NPlusPlusVectorEnv.exchange_levels": (envs.exchange_levels, {"levels": [WALK]}),
        "NPlusPlusVectorEnv.set_level_weights": (envs.set_level_weights, {"weights": None}),
        "NPlusPlusVectorEnv.assign_levels": (envs.assign_levels, {"levels": None}),
        "NPlusPlusVectorEnv.set_starts": (envs.set_starts, {"states": (), "share": 1.0}),
        "NPlusPlusVectorEnv.set_start_shares": (envs.set_start_shares, {"share": 1.0}),
        "NPlusPlusVectorEnv.step": (envs.step, {"actions": [0] * 4}),
        "NPlusPlusVectorEnv.pictures": (envs.pictures, {"indices": [0]}),
        "NPlusPlusEnv.reset": (env.reset, {"seed": 1, "options": None}),
        "NPlusPlusEnv.step": (env.step, {"action": 0}),
        "NPlusPlusEnv.set_state": (env.set_state, {"state": env.get_state()}),
        "build_level": (level.build_level, {"tiles": None, "spawn": (20, 20), "title": "x"}),
        "build_room": (level.build_room, {"cells": None, "spawn": (20, 20), "title": "x"}),
        "build_room of entities": (lambda entity: level.build_room(entity), {"entity": "gold 30 30"}),
        "hall_tiles": (level.hall_tiles, {"columns": (1, 3), "rows": (1, 3)}),
        "mirrored": (level.mirrored, {"level": walk}),
        "pack": (level.pack, {"levels": [walk], "with_distances": False}),
        "format_inputs": (level.format_inputs, {"inputs": b"\1"}),
        "parse_inputs": (level.parse_inputs, {"text": "2R", "source": "a text"}),
        "known_solutions": (level.known_solutions, {"folder": None}),
        "make_guide": (plan.make_guide, {"levels": level.pack([walk]), "level": 0, "gold": False, "careful": False}),
        "make_table": (plan.make_table, {"count": 3}),
        "Recording.of": (replay.Recording.of, {"level": walk, "inputs": b"\1", "settings": None, "seed": None}),
        "Recording.save": (recording.save, {"path": tmp_path / "b.replay"}),
        "load_recording": (replay.load_recording, {"path": tmp_path / "a.replay"}),
        "recording_pictures": (replay.recording_pictures, {"recording": recording, "scale": 1.0, "theme": "light"}),
        "replay.verify": (replay.verify, {"file": tmp_path / "a.replay"}),
        "write_video": (replay.write_video, {"pictures": [picture], "path": tmp_path / "v.gif", "rate": 10.0}),
        "EpisodeRecorder": (replay.EpisodeRecorder, {"env": env}),
        "generate_level": (generate.generate_level, {"family": "rooms", "number": 0, **of_generator}),
        "generated_levels": (generate.generated_levels, {"families": "rooms", **of_generator}),
        "benchmark.evaluate": (
            benchmark.evaluate,
            {"policy": lambda seen: 0, "track": track, "mode": "state", "seed": 0, "environment": None, "packs": {}},
        ),
        "Track.environment": (track.environment, {"mode": "state", "given": None}),
        "interquartile_mean": (benchmark.interquartile_mean, {"values": np.ones(4)}),
        "performance_profile": (benchmark.performance_profile, {"values": np.ones((1, 4)), "thresholds": np.zeros(2)}),
        "load_track": (benchmark.load_track, {"name": "Builtin-v1"}),
        "played": (benchmark.played, {"sources": "a", "config": EnvironmentConfig(levels=WALK), "packs": None}),
        "export_dataset": (benchmark.export_dataset, {"name": "a", "given": None, "description": "b"}),
        "read_submission": (benchmark.read_submission, {"source": tmp_path / "x.zip"}),
        "training_levels": (benchmark.training_levels, {"track": track, "packs": {}}),
        "benchmark.verify": (benchmark.verify, {"source": tmp_path / "x.zip", "packs": None, "policies": False}),
        "assert_flat": (memory.assert_flat, {"function": lambda: None, "steps": 1, "name": ""}),
        "flat_profile": (memory.flat_profile, {"name": "a"}),
        "profile": (memory.profile, {"name": "a", "num_envs": 0, "output_dir": None, "trace": True}),
        "Shard": (jobs.Shard, {"number": 1, "count": 2}),
        "Shard.of": (jobs.Shard.of, {"text": "1/2"}),
        "Generating": (jobs.Generating, {"count": 3, "first": 0, "families": "rooms", **of_generator}),
        "Solving": (jobs.Solving, {"levels": WALK, "seconds": None, "frames": 3, "seed": 0, "hold": 1, "smooth": None}),
        "Validating": (jobs.Validating, {"levels": WALK}),
        "Showing": (jobs.Showing, {"levels": WALK, "recordings": (), "title": "a"}),
        "Evaluating": (
            jobs.Evaluating,
            {"runs": "builtin", "track": "Builtin-v1", "mode": "state", "budget": "4m", "with_policy": True},
        ),
        "merge": (jobs.merge, {"folders": tmp_path, "output": tmp_path / "out"}),
        "jobs.run": (jobs.run, {"job": None, "output": tmp_path / "x.txt", "shard": None}),
    }


def calls_of_training(tmp_path: Path) -> Mapping[str, tuple[Callable[..., Any], dict[str, Any]]]:
    """Return the same of training, which ends before its first update."""
    options = {"num_envs": 8, "num_steps": 16, "num_minibatches": 2, "hidden_size": 8, "track": "none"}
    config = train.TrainConfig.of(**SEEN, **options)
    seen = EnvironmentConfig(**SEEN, max_frames=60)
    policy = load_policy("builtin", levels=WALK)
    shapes = policy.network.observation_shapes
    space = NPlusPlusVectorEnv(**SEEN).single_observation_space
    network = train.make_policy(config, {"game_state": space["game_state"].shape})
    buffer, result = train.TrajectoryBuffer(space, 6), train.evaluate(None, seen, "random", 2)[0]
    curriculum = train.LevelCurriculum(3)
    return {
        "train": (
            train.train,
            {"config": config, "hooks": train.Hooks(), "resume": tmp_path, "init": tmp_path, "overwrite": False},
        ),
        "load_policy": (load_policy, {"path": "builtin", "levels": WALK}),
        "Policy.act": (
            policy.act,
            {"observation": {name: np.zeros((2, *shape)) for name, shape in shapes.items()}, "argmax": False}
            | {"seed": None},
        ),
        "train.evaluate": (
            train.evaluate,
            {"policy": None, "environment": seen, "mode": "random", "episodes_per_level": 2, "seed": 0}
            | {"candidates": 1, "num_threads": None},
        ),
        "make_environments": (train.make_environments, {"config": config.environment, "num_envs": 2}),
        "estimate_bytes": (train.estimate_bytes, {"config": config}),
        "read_recipe": (train.read_recipe, {"path": "generated"}),
        "load_checkpoint": (train.load_checkpoint, {"path": tmp_path / "x"}),
        "restore_config": (train.restore_config, {"checkpoint": policy.checkpoint}),
        "restore_policy": (train.restore_policy, {"checkpoint": policy.checkpoint}),
        "make_policy": (
            train.make_policy,
            {"config": config, "observation_shapes": {"game_state": (3,)}, "generator": None},
        ),
        "ActorCritic": (
            train.ActorCritic,
            {"observation_shapes": {"game_state": (3,)}, "hidden_size": 8, "shared_trunk": True, "recurrent_size": 0}
            | {"generator": None},
        ),
        "start_states": (train.start_states, {"config": config.environment, "solutions": {}, "count": 3}),
        "demonstrate": (train.demonstrate, {"sources": tmp_path, "config": config.environment}),
        "LevelCurriculum": (train.LevelCurriculum, {"num_levels": 3, "floor": 0.2, "fast": 0.1, "slow": 0.02}),
        "LevelCurriculum.update": (curriculum.update, {"levels": np.array([0, 1]), "success": np.array([True, False])}),
        "CloningSettings": (train.CloningSettings, vars(train.CloningSettings())),
        "Ranks.share": (train.Ranks().share, {"num_envs": 3}),
        "TrajectoryBuffer": (
            train.TrajectoryBuffer,
            {"observation_space": space, "num_actions": 6, "device": "cpu", "frame_stack": 1},
        ),
        "TrajectoryBuffer.fill": (buffer.fill, {"trajectories": [], "gamma": 0.9, "gae_lambda": 0.9}),
        "TrajectoryBuffer.observation_buffers": (buffer.observation_buffers, {"count": 3}),
        "clone": (
            train.clone,
            {"policy": network, "trajectories": [], "observation_space": space, "frame_stack": 1, "settings": None}
            | {"seed": 0},
        ),
        "LevelResult.any_of": (result.any_of, {"attempts": 2}),
        "LevelResult.inputs": (result.inputs, {"environment": seen}),
    }


NUMBERS = {"seconds", "frames", "num_envs", "seed", "count", "steps", "scale", "rate", "hold", "gamma", "index"}
"""Arguments that nothing but a number may be, some of them None; those of ``Solving`` may be several."""
ENDLESS = {
    ("assert_flat", "steps", "a number that is too large"),
    ("generate_level", "difficulty", "an array"),  # of two numbers, as it should be
}
"""Calls that do what they are asked to, and would not end, or not soon."""


@pytest.mark.parametrize("make", [calls, calls_of_training])
def test_a_wrong_value_is_one_error_that_names_the_argument(make, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tried = 0
    for called, (function, right) in make(tmp_path).items():
        for argument in right:
            for kind, wrong in WRONG.items():
                if (called, argument, kind) in ENDLESS:
                    continue
                tried += 1
                message = outcome(function, {**right, argument: wrong})
                assert "\n" not in message, (called, argument, kind)
                if (
                    called != "Solving"
                    and argument in NUMBERS
                    and kind in ("text", "an array", "an object", "a mapping")
                ):
                    assert argument in message.partition(":")[0], (called, argument, kind, message)
    assert tried > 700 if make is calls else tried > 500


def outcome(function: Callable[..., Any], arguments: dict[str, Any]) -> str:
    """Return the message of an error of the package, or of a file that is missing or there, else nothing."""
    try:
        function(**arguments)
    except (NcloneError, FileNotFoundError, FileExistsError, memory.GrowthError) as error:
        return str(error).partition("\n")[0] if isinstance(error, memory.GrowthError) else str(error)
    return ""


LEFT = {
    "Action": "an enumeration",
    "level_library": "no arguments",
    "joined_ranks": "no arguments",
    "train": "a package, whose function of this name is called",
    "expand": "a kernel",
    "find_place": "a kernel",
    "path_remaining": "a kernel",
    "VectorEnvironment": "a protocol",
    "Hooks": "functions of the caller",
    "Job": "abstract",
    "Policy": "made by load_policy",
    "NPlusPlusEnv": "as create_environment",
    "NPlusPlusVectorEnv": "as create_vector_environment",
    "NPlusPlusVecEnv": "needs another library: tests/compat/test_sb3.py",
    "NPlusPlusPufferEnv": "needs another library",
    **dict.fromkeys(
        ("EnvironmentConfig", "ObservationConfig", "RenderConfig", "RewardConfig"), "tests/test_options.py"
    ),
    **dict.fromkeys(("TrainConfig", "PPOConfig", "CloneConfig", "EvaluationConfig"), "tests/test_options.py"),
    **dict.fromkeys(("Level", "MemoryNode", "Trajectory", "Solution", "Verdict", "GeneratedLevel"), "a result"),
    **dict.fromkeys(("Played", "Run", "Score", "Submission", "Track", "Verification", "Watch"), "a result"),
    **dict.fromkeys(("Cloning", "EpisodeData", "Intake", "LevelResult", "Recipe", "StartStates"), "a result"),
    **dict.fromkeys(("TrainResult", "Ranks", "Recording", "GrowthError", "NcloneError"), "a result"),
}
"""Public names that are not called, and why."""


def test_every_public_function_is_called(tmp_path):
    tried = {name.rpartition(".")[2] for name in (*calls(tmp_path), *calls_of_training(tmp_path))}
    rooms = (nclone_env, plan, train, level, replay, generate, benchmark, memory, jobs)
    public = {name for room in rooms for name in dir(importlib.import_module(room.__name__))}
    assert {name for name in public - tried - LEFT.keys() if not name.isupper()} == set()
    assert LEFT.keys() <= public


@checked("left")
def example(
    number: float,
    sizes: tuple[int, int] = (1, 2),
    *names: str,
    path: str | Path = ".",
    size: Annotated[int, Within(1, 9)] = 3,
    theme: Literal["light", "dark"] = "light",
    several: Sequence[str | Path] = (),
    once: Iterable[bytes] | None = None,
    config: EnvironmentConfig | None = None,
    call: Callable[[], None] | None = None,
    table: Mapping[str, int] | None = None,
    array: np.ndarray | None = None,
    flag: bool = False,
    left: int = 0,
    **others: int,
) -> float:
    """Return the number."""
    return number


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"number": "1"}, "number: expected a number, got '1'"),
        ({"number": math.nan}, "number: expected a number, got nan"),
        ({"number": True}, "number: expected a number, got True"),
        ({"sizes": 3}, "sizes: expected 2 values, a whole number and a whole number, got 3"),
        ({"sizes": (1, 2, 3)}, r"sizes: expected 2 values, a whole number and a whole number, got \(1, 2, 3\)"),
        ({"path": 3}, "path: expected a path on this machine, got 3"),
        ({"path": "a\0"}, r"path: expected a path on this machine, got 'a\\x00'"),
        ({"path": ""}, "path: expected a path on this machine, got ''"),
        ({"path": "file:///a"}, "path: expected a path on this machine, got 'file:///a'"),
        ({"number": Decimal("nan")}, r"number: expected a number, got Decimal\('NaN'\)"),
        ({"size": 10}, "size: expected a whole number from 1 to 9, got 10"),
        ({"theme": "ligth"}, "theme: expected one of 'light', 'dark', got 'ligth'; did you mean 'light'"),
        ({"several": [1]}, r"several: expected several values, got \[1\]"),
        ({"several": {}}, "several: expected several values, got {}"),
        ({"once": b"a"}, "once: expected several values or None, got b'a'"),
        ({"config": {}}, "config: expected an EnvironmentConfig or None, got {}"),
        ({"call": 1}, "call: expected a function or None, got 1"),
        ({"table": []}, r"table: expected a mapping or None, got \[\]"),
        ({"flag": 0}, "flag: expected True or False, got 0"),
    ],
)
def test_arguments_are_checked_by_their_annotations(arguments, message):
    with pytest.raises(ConfigError, match=message):
        example(**{"number": 1, **arguments})


@checked()
def integers(
    count: int | None, sizes: tuple[int, int], *more: int, size: Annotated[int, Within(1, 9)] = 3, rate: float = 1
) -> str:
    """Return how the arguments arrive."""
    return repr((count, sizes, more, size, rate))


@pytest.mark.parametrize("two", [2.0, np.float32(2), np.int8(2), np.array(2), np.array(2.0)])
def test_whole_numbers_of_all_types_are_integers(two):
    assert integers(two, [two, 4], two, size=two) == "(2, (2, 4), (2,), 2, 1)"
    assert integers(None, np.array([2, 4]), rate=2.0) == "(None, (2, 4), (), 3, 2.0)"
    envs = NPlusPlusVectorEnv(num_envs=np.add(two, 1), num_threads=two, levels=WALK, max_episode_steps=two)
    envs.reset(seed=two, options={"level": two - two})
    assert repr((envs.num_envs, envs.np_random_seed, envs.config.max_frames)) == "(3, 2, 8)"
    assert envs.get_state(two) == envs.get_state(2)
    envs.copy_world(two, 0)
    assert len(envs.pictures([two])) == 1
    assert repr(jobs.Shard(two, two)) == "Shard(number=2, count=2)"
    for wrong in (two + 0.5, -two):
        with pytest.raises(ConfigError, match="num_envs: expected a whole number from 1"):
            NPlusPlusVectorEnv(num_envs=wrong, levels=WALK)


def test_arguments_of_all_forms_are_accepted():
    numbers = (1, 1.5, math.inf, np.float32(2), np.int8(3))
    assert (
        tuple(example(number, np.array([1, 2]), "a", "b", path=Path("a"), other="x") for number in numbers) == numbers
    )
    assert example(1, several="text", once=iter([1]), array=[[1]], left="checked by the function", call=print) == 1
    assert example(1, several=(Path("a"), "b"), table={"a": 1}, flag=np.True_, config=EnvironmentConfig()) == 1
    with pytest.raises(ConfigError, match="names: expected text, got 3"):
        example(1, (1, 2), "a", 3)
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'number'"):
        example()
    assert list(inspect.signature(example).parameters)[:3] == ["number", "sizes", "names"]
