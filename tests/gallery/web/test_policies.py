"""The bundled policies in pages, in Node: they observe, and choose, what they do in Python."""

import hashlib
import math
import re
import subprocess
from contextlib import closing

import numpy as np
import pytest

from nclone_env.config import EnvironmentConfig
from nclone_env.env.vector import NPlusPlusVectorEnv
from nclone_env.gallery.policies import page_policies
from nclone_env.gallery.site import write_assets
from nclone_env.game import INPUT_OF_ACTION
from nclone_env.level.build import build_level, build_room, everything, hall_tiles
from nclone_env.level.catalog import level_sets
from nclone_env.level.formats.map_bytes import write_map
from nclone_env.level.level import count_exits
from nclone_env.level.level_set import Paths, pack
from nclone_env.level.load import load_levels
from nclone_env.level.routes.fields import Fields
from nclone_env.level.routes.guide import paths_with_doors
from nclone_env.train import bundled_names, load_policy, train
from nclone_env.train.policies.checkpoint import load_checkpoint, save_checkpoint

from ...shared import needs_shared
from ...train.runs import config
from ..scripts import NODE, as_text, in_node
from ..test_scripts import TAKEN
from .test_simulator import MODULE, WEB, asked, is_writable, needs_node, packs, text

SEED = 5
POLICIES = {policy.name: policy for policy in page_policies()}
FILE = str(WEB / "policies.js")
SHOWN = {np.dtype(np.float16): np.float32}
"""Dtypes that pages show in another one, which holds all their values."""


def given(name: str) -> dict:
    """Return a policy as ``Policies.load`` takes it."""
    return {**POLICIES[name]._asdict(), "weights": text(POLICIES[name].weights)}


def levels(every: int = 2):
    """Return each ``every``-th built-in level, one with everything, and two whose path leads by a door or a wall."""
    things = "exit 120 62", "exit_switch 110 62", "locked_door 100 60 0", "locked_door_switch 20 62"
    corridor = hall_tiles((2, 40), (14, 15))
    walled = corridor.copy()
    walled[:, 25] = 1
    own = [build_level(*things, tiles=tiles, spawn=(40, 62)) for tiles in (corridor, walled)]
    return [*load_levels(level_sets())[::every], everything(), build_room("exit 90 58", "exit_switch 20 58"), *own]


def cases(name: str, steps: int, every: int = 12) -> list[dict]:
    """Return what a policy observes and chooses on levels in Python; the actions that are played are sampled."""
    played = levels(every)
    policy, other = (load_policy(name, levels=("first-steps",)) for _ in range(2))  # a memory each
    config: EnvironmentConfig = policy.environment.replace(levels=tuple(played))
    stack = config.observation.frame_stack
    with closing(NPlusPlusVectorEnv(config, len(played))) as envs:
        observations, _ = envs.reset(seed=0, options={"level": np.arange(len(played))})
        found = [
            {"name": level.name, "map": text(write_map(level.raw)), "inputs": [], "probable": [], "sampled": []}
            | {"seen": {each: [] for each in config.observations}}
            for level in played
        ]
        over = np.zeros(len(played), bool)
        for step in range(steps):
            probable = other.act(observations, argmax=True, episode_start=step == 0)
            sampled = policy.act(observations, seed=SEED if step == 0 else None, episode_start=step == 0)
            for number in np.flatnonzero(~over):
                case = found[number]
                for each in config.observations:
                    newest = observations[each][number][-1] if stack > 1 else observations[each][number]
                    case["seen"][each].append(np.asarray(newest, SHOWN.get(newest.dtype)).tobytes())
                case["probable"].append(int(probable[number]))
                case["sampled"].append(int(sampled[number]))
                case["inputs"].append(bytes([INPUT_OF_ACTION[sampled[number]]] * config.frame_skip))
            observations, _, terminated, truncated, _ = envs.step(sampled)
            over |= terminated | truncated
    for case in found:
        case["inputs"] = text(b"".join(case["inputs"]))
        case["seen"] = {each: text(b"".join(rows)) for each, rows in case["seen"].items()}
    return found


def test_pages_have_all_bundled_policies():
    assert tuple(POLICIES) == bundled_names()
    for name, page in POLICIES.items():
        policy = load_policy(name, levels=("first-steps",))
        environment = policy.environment
        assert page.environment["observations"] == list(environment.observations)
        for field, value in page.environment.items():
            if field != "observations":
                assert value == getattr(environment, field, getattr(environment.observation, field, None)), field
        weights = np.frombuffer(page.weights, np.float32)
        whole = {key: value.detach().numpy() for key, value in policy.network.named_parameters()}
        layers = [
            key.removesuffix(".weight") for key in whole if key.startswith(("trunk", "actor")) and "weight" in key
        ]
        for (weight, bias, units, width), layer in zip(page.layers, layers, strict=True):
            assert np.array_equal(weights[weight : weight + units * width], whole[f"{layer}.weight"].ravel())
            assert np.array_equal(weights[bias : bias + units], whole[f"{layer}.bias"])


@needs_node
@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize(("steps", "every"), [(30, 12), pytest.param(200, 4, marks=pytest.mark.slow)])
def test_a_policy_observes_and_chooses_what_it_does_in_python(name, steps, every, comparison):
    recorded = cases(name, steps, every)
    found = asked("acts", module=text(MODULE), policies=FILE, policy=given(name), cases=recorded, seed=SEED)
    assert found["faults"] == []
    comparison.traces, comparison.frames = len(recorded), found["states"]
    assert found["states"] == sum(len(case["probable"]) for case in recorded) > 20 * len(recorded)


@needs_node
@pytest.mark.parametrize(
    "fields",
    [
        {"frame_stack": 3, "observations": ("game_state", "locals", "free_motion"), "dtype": "float16"},
        pytest.param({"recurrent_size": 16, "observations": ("game_state", "locals")}, marks=pytest.mark.slow),
        {"recurrent_size": 16, "frame_stack": 2, "shared_trunk": False},
    ],
    ids=lambda fields: ", ".join(fields),
)
def test_a_policy_with_stacks_or_a_memory_chooses_what_it_does_in_python(fields, tmp_path, comparison):
    file = train(config(tmp_path, levels=("first-steps/01-walk",), hidden_size=16, max_frames=400, **fields)).checkpoint
    weights = load_checkpoint(file)
    for name, values in weights.policy.items():
        if name.startswith(("actor", "recurrence")):
            values *= 5.0  # it has hardly learned: chances would be all but equal, and its memory faint
    save_checkpoint(file, weights)
    recorded = cases(str(file), 30)
    opened = in_node(tmp_path, TAKEN, as_text(file.read_bytes()))
    request = {"module": text(MODULE), "policies": FILE, "policy": opened, "cases": recorded, "seed": SEED}
    found = asked("acts", **request)
    assert found["faults"] == []
    comparison.traces, comparison.frames = len(recorded), found["states"]
    assert found["states"] == sum(len(case["probable"]) for case in recorded) > 20 * len(recorded)
    forgotten = asked("acts", **request, forgets=True)["faults"]
    assert {what for _, _, what in forgotten} <= {"most probable action", "sampled action"}
    assert min(step for _, step, _ in forgotten) > 0


def paths_of(level) -> list[list]:
    """Return what ``paths`` of ``check.js`` returns of a level, in Python, and the bytes of each array."""
    levels = pack([level], with_distances=True)
    found = []
    for paths, names in ((levels.paths, Fields._fields), (paths_with_doors(levels), Paths._fields[1:])):
        data = b"".join(getattr(paths, name).tobytes() for name in names)
        sizes = {name: getattr(paths, name).nbytes for name in names}
        found.append([hashlib.sha256(data).hexdigest(), float(paths.header[0]["start_distance"]), sizes])
    return found


def compare_paths(played: list, comparison) -> None:
    """Compare the paths of levels that have an exit; lengths without a path are no JSON and left out."""
    known = [(level, paths_of(level)) for level in played if count_exits(level.raw.records) and is_writable(level)]
    maps = [text(write_map(level.raw)) for level, _ in known]
    found = asked("paths", module=text(MODULE), maps=maps, sizes=[[sizes for *_, sizes in own] for _, own in known])
    wanted = [[[digest, length if math.isfinite(length) else None] for digest, length, _ in own] for _, own in known]
    assert found == wanted
    comparison.traces = len(known)


@needs_node
def test_paths_are_those_of_environments(comparison):
    compare_paths(levels(), comparison)


@needs_node
@needs_shared
@pytest.mark.parametrize("every", [40, pytest.param(3, marks=pytest.mark.slow)])
def test_paths_of_packs_are_those_of_environments(every, comparison):
    compare_paths([case.level for case in packs()][::every], comparison)


@needs_node
def test_the_comparison_notices_a_weight_and_an_observation():
    recorded = cases("builtin", 10)[:4]
    weights = np.frombuffer(POLICIES["builtin"].weights, np.float32).copy()
    weights[POLICIES["builtin"].layers[-1][1]] += 100.0  # the bias of the first action
    changed = given("builtin") | {"weights": text(weights.tobytes())}
    found = asked("acts", module=text(MODULE), policies=FILE, policy=changed, cases=recorded, seed=SEED)
    assert {what for _, _, what in found["faults"]} <= {"most probable action", "sampled action"} != set()
    assert found["faults"]
    for step, field in enumerate(({"dtype": "float16"}, {"max_frames": 1201})):
        other = given("builtin")
        other["environment"] = other["environment"] | field
        found = asked("acts", module=text(MODULE), policies=FILE, policy=other, cases=recorded, seed=SEED)
        assert [(at, what) for _, at, what in found["faults"]] == [(step, "game_state")] * len(recorded)


@needs_node
def test_three_minutes_of_policies_leave_memory_as_it_is():
    """Browsers play an hour of them, in ``tests/system``."""
    maps = [text(write_map(level.raw)) for level in (everything(), *load_levels(["first-steps"])[:2])]
    request = {"policies": FILE, "policy": given("generated-lookahead"), "maps": maps, "parts": 9, "frames": 1200}
    sizes = asked("hours", module=text(MODULE), **request)
    assert sizes[3:] == sizes[2:-1]


@needs_node
@pytest.mark.parametrize("name", ["builtin", "generated"])  # by both kinds of paths
def test_what_policies_cannot_play_is_refused(name):
    without, level = (text(write_map(build_room(*things).raw)) for things in ((), ("exit 90 58", "exit_switch 20 58")))
    request = {"policies": FILE, "policy": given(name), "without": without, "map": level}
    exit_, observation, nothing, width = asked("refusals", module=text(MODULE), **request)
    assert exit_ == "level: expected an exit, to which policies find a path, got none"
    expected = "observations: expected some of game_state, locals, free_motion, action_outcomes, got player_frame"
    assert (observation, nothing) == (expected, "")
    assert re.fullmatch(r"layer: expected (30|94) inputs, got (60|124)", width)


@needs_node
def test_the_examples_of_the_documentation_run(tmp_path):
    page = (WEB.parents[2] / "docs" / "operation" / "web.md").read_text(encoding="utf-8")
    first, second = re.findall(r"^```js\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    (tmp_path / "nclone_env").symlink_to(WEB.parents[1])
    (tmp_path / "level.map").write_bytes(write_map(load_levels(["first-steps"])[0].raw))
    (tmp_path / "gallery").mkdir()
    write_assets(tmp_path / "gallery" / "assets")
    code = first.removesuffix("});\n") + f"run.at(0);\n{second}console.log(run.state);\n}});\n"
    (tmp_path / "example.cjs").write_text(code, encoding="utf-8")
    done = subprocess.run([str(NODE), "example.cjs"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.stderr, done.stdout.split()[-1]) == ("", "won")
