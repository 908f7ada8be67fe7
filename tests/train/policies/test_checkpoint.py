"""Checkpoints round-trip; every other file raises one clear error that names it."""

import dataclasses
import hashlib
import os
import random
import resource
import zipfile
from pathlib import Path

import pytest
import torch

from nclone_env import __version__
from nclone_env.config import OBSERVATION_NAMES, EnvironmentConfig
from nclone_env.errors import CheckpointError
from nclone_env.obs.spec import frame_specs
from nclone_env.options import flat, leaves
from nclone_env.train import (
    ActorCritic,
    TrainConfig,
    load_checkpoint,
    load_policy,
    restore_config,
    restore_policy,
    resumed_config,
    train,
)
from nclone_env.train.policies import checkpoint as module
from nclone_env.train.policies.checkpoint import check_resumable, described_version, option, save_checkpoint
from nclone_env.train.policies.files import checkpoint_file

from ..runs import checkpoint_of, config
from ..stub import LineWorld

CONFIG = TrainConfig.of(hidden_size=8, levels=("a", "b"))


@pytest.fixture
def saved(tmp_path):
    checkpoint = checkpoint_of(
        CONFIG,
        ActorCritic({"game_state": (30,)}, hidden_size=8),
        [{"timesteps": 5, "success_rate": float("nan")}],
        optimiser={"mean": torch.arange(3.0), "square": torch.ones(3), "count": 7},
        counters={"timesteps": 5, "updates": 1, "episodes": 2},
        episodes={"vector_steps": 5, "counts": torch.ones(2), "recent": torch.zeros(2, 8, dtype=torch.uint8)},
        observations={"game_state": torch.full((1, 2, 30), 0.5)},
        environments={"snapshots": torch.arange(5, dtype=torch.uint8), "sizes": torch.tensor([2, 3])},
        path=tmp_path / "deep" / "checkpoint.pt",
    )
    save_checkpoint(checkpoint.path, checkpoint)
    return checkpoint.path, checkpoint


def test_round_trip(saved):
    path, checkpoint = saved
    loaded = load_checkpoint(path)
    assert tuple(torch.load(path, weights_only=True)) == module.SAVED_FIELDS, "equal runs have equal files"
    assert loaded.counters == checkpoint.counters
    assert loaded.package_version == described_version()
    assert loaded.package_version.startswith(__version__)
    assert loaded.optimiser["count"] == 7
    assert torch.equal(loaded.observations["game_state"], checkpoint.observations["game_state"])
    assert {name: part.tolist() for name, part in loaded.environments.items()} == {
        "snapshots": [0, 1, 2, 3, 4],
        "sizes": [2, 3],
    }
    policy = restore_policy(loaded)
    assert all(torch.equal(v, checkpoint.policy[k]) for k, v in policy.state_dict().items())
    assert restore_config(loaded) == CONFIG


@pytest.mark.parametrize(
    ("make", "kind"), [(os.mkfifo, "expected a file, got a device or pipe"), (os.mkdir, "Is a directory")]
)
def test_no_file(tmp_path, make, kind):
    make(tmp_path / "checkpoint.pt")
    with pytest.raises(CheckpointError, match=rf"checkpoint\.pt: .* but the file cannot be read: .*{kind}"):
        load_checkpoint(checkpoint_file(tmp_path))


UNREAD = "expected a checkpoint, but the file cannot be read"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"hello", "expected a checkpoint of nclone_env, got a text that begins with 'hello'; pass the folder of"),
        *((content, UNREAD) for content in (b"", b"\x80\x02]q\x00.", b"PK\x03\x04rest")),
    ],
)
def test_something_else(tmp_path, content, message):
    path = tmp_path / "other.pt"
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match=f"other.pt: {message}"):
        load_checkpoint(path)


def test_other_contents(tmp_path):
    path = tmp_path / "other.pt"
    torch.save({"policy": {}}, path)
    with pytest.raises(CheckpointError, match="expected a checkpoint of nclone_env, got a file without counters"):
        load_checkpoint(path)
    torch.save([1, 2], path)
    with pytest.raises(CheckpointError, match="got a file with other contents"):
        load_checkpoint(path)


def test_code_in_a_file_is_not_run(tmp_path):
    class Evil:
        def __reduce__(self):
            return (tmp_path.joinpath("ran").write_text, ("x",))

    path = tmp_path / "evil.pt"
    torch.save({"policy": Evil()}, path)
    with pytest.raises(CheckpointError, match=r"evil.pt"):
        load_checkpoint(path)
    assert not (tmp_path / "ran").exists()


FORMER = zipfile.ZipFile(Path(__file__).parent / "former.zip")
"""What earlier commits wrote: a checkpoint of each former format, and one of a former network in format 8."""


def never(*_):
    raise AssertionError("environments were made")


@pytest.mark.parametrize("name", FORMER.namelist())
def test_checkpoints_of_former_versions_are_refused_before_anything_is_prepared(tmp_path, name):
    path = Path(FORMER.extract(name, tmp_path))
    expected = f"format {module.FORMAT}, got {name[7]}"
    if name.startswith("pictures"):
        expected = r"the network of this version, with .* \(16, 64\), got one with \(32, 64\)"
    message = (
        rf"{name}: expected .*{expected}, written by nclone_env {__version__} of an earlier commit; this is [^\n]+$"
    )
    for read in (load_policy, resumed_config):
        with pytest.raises(CheckpointError, match=message):
            read(path)
    for source in ("resume", "init"):
        settings = config(tmp_path, observations="player_frame", picture_size=16, hidden_size=4, num_envs=256)
        settings = settings.replace(num_steps=64, levels="first-steps", max_frames=1200)
        with pytest.raises(CheckpointError, match=message):
            train(settings, make_envs=never, **{source: path})


def test_a_later_format_is_refused(saved):
    path, checkpoint = saved
    save_checkpoint(path, dataclasses.replace(checkpoint, format=99, package_version="9.1 (abc)"))
    with pytest.raises(CheckpointError, match=rf"format {module.FORMAT}, got 99, written by nclone_env 9.1 \(abc\); "):
        load_checkpoint(path)


NETWORKS = {8: ("5c9a120a2d505214", "ef8c8c39d7fa11a9")}
"""Digests of the parameters' names and shapes, without and with a memory, by format."""


def test_another_network_raises_the_format():
    """After a change of the network, add its digests with the next number of ``checkpoint.FORMAT``."""
    environment = EnvironmentConfig(observations=[name for name in OBSERVATION_NAMES if name != "graph"])
    shapes = {spec.name: spec.shape for spec in frame_specs(environment)}
    for units, digest in zip((0, 24), NETWORKS[module.FORMAT], strict=True):
        policies = (ActorCritic(shapes, shared_trunk=shared, recurrent_size=units) for shared in (True, False))
        found = [(name, tuple(each.shape)) for policy in policies for name, each in policy.state_dict().items()]
        assert hashlib.sha256(repr(found).encode()).hexdigest()[:16] == digest


def test_unknown_field_of_a_later_version(saved):
    _, checkpoint = saved
    later = dataclasses.replace(checkpoint, train_config={**checkpoint.train_config, "wings": 2})
    with pytest.raises(CheckpointError, match=r"checkpoint.pt: .*unknown field 'wings'"):
        restore_config(later)


def test_options_of_earlier_versions_are_left_out(saved):
    _, checkpoint = saved
    earlier = dataclasses.replace(checkpoint, train_config={**checkpoint.train_config, "amp": True, "compile": False})
    assert restore_config(earlier) == restore_config(checkpoint)
    assert restore_policy(earlier).observation_shapes == restore_policy(checkpoint).observation_shapes


@pytest.mark.parametrize(
    ("claim", "message"),
    [
        ({"observation_shapes": {"game_state": [3_000_000_000]}}, "expected the network of this version"),
        ({"observation_shapes": {"player_frame": [10**6, 10**6, 1]}}, "expected the network of this version"),
        ({"observation_shapes": None}, "cannot be restored"),
        ({"observation_shapes": [30]}, "cannot be restored"),
        ({"observation_shapes": {"game_state": [10**9, "x"]}}, "cannot be restored: expected whole numbers"),
        ({"observation_shapes": {"game_state": [10**30]}}, "cannot be restored"),
        ({"train_config": {**flat(CONFIG), "hidden_size": 20_000}}, "hidden_size: expected"),
        ({"observation_shapes": {"game_state": [31]}}, r"with trunk.0.weight \(8, 31\), got .* \(8, 30\); "),
        ({"train_config": {**flat(CONFIG), "hidden_size": 4096}}, "expected the network of this version"),
    ],
)
def test_claims_that_the_file_does_not_hold(saved, claim, message):
    _, checkpoint = saved
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(CheckpointError, match=rf"checkpoint.pt: .*{message}"):
        restore_policy(dataclasses.replace(checkpoint, **claim))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000  # KiB


def test_a_number_that_stands_for_a_large_parameter(saved):
    _, checkpoint = saved
    claimed = dataclasses.replace(checkpoint, observation_shapes={"game_state": [10**9]})
    claimed.policy["trunk.0.weight"] = torch.zeros(1, 1).expand(8, 10**9)
    with pytest.raises(CheckpointError, match=r"trunk\.0\.weight: expected a contiguous float32 tensor"):
        restore_policy(claimed)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_parameters_that_are_not_finite(saved, value):
    _, checkpoint = saved
    checkpoint.policy["critic.bias"][0] = value
    with pytest.raises(CheckpointError, match=r"critic.bias: expected finite parameters"):
        restore_policy(checkpoint)


def test_compressed_parts_are_refused_unread(saved):
    path, _ = saved
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("checkpoint/more", bytes(10**8))
    with pytest.raises(CheckpointError, match=r"checkpoint.pt: .*compressed or overlapping parts"):
        load_checkpoint(path)


@pytest.mark.parametrize("count", [25_000, 70_000])
def test_archives_of_many_parts_are_refused_unread(tmp_path, monkeypatch, count):
    """With and without ZIP64, which archives of torch have."""
    with zipfile.ZipFile(tmp_path / "many.pt", "w") as archive:
        for number in range(count):
            archive.writestr(zipfile.ZipInfo(str(number)), b"")
    monkeypatch.setattr(zipfile, "ZipFile", None)
    with pytest.raises(CheckpointError, match=r"many.pt: .*a directory of members of [1-4],.* bytes"):
        load_checkpoint(tmp_path / "many.pt")


def test_objects_that_claim_memory_are_refused(tmp_path):
    path = tmp_path / "large.pt"
    claim = b"\x80\x02cbuiltins\nbytearray\nJ" + (2**31 - 1).to_bytes(4, "little") + b"\x85R."
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("large/data.pkl", claim)
        archive.writestr("large/version", "3")
    with pytest.raises(CheckpointError, match=r"large.pt: .*builtins bytearray"):
        load_checkpoint(path)


def outcome(path, checkpoint):
    try:
        policy = restore_policy(load_checkpoint(path))
    except CheckpointError as error:
        return "refused" if "checkpoint.pt" in str(error) else f"a message without the file: {error}"
    same = all(torch.equal(v, checkpoint.policy[k]) for k, v in policy.state_dict().items())
    return "intact" if same else "a damaged policy"


def test_damaged_bytes_are_found_or_harmless(saved):
    """Any cut and any flipped byte gives a CheckpointError or an intact policy (some bytes carry nothing)."""
    path, checkpoint = saved
    whole, dice = path.read_bytes(), random.Random(0)
    outcomes = []
    for trial in range(60):
        data = bytearray(whole[: dice.randrange(len(whole))] if trial % 2 else whole)
        for _ in range(1 + trial % 3):
            if data:
                data[dice.randrange(len(data))] ^= 1 << dice.randrange(8)
        path.write_bytes(data)
        outcomes.append(outcome(path, checkpoint))
    assert set(outcomes) <= {"refused", "intact"}
    assert outcomes.count("refused") > 30


# Options that a resumed run keeps: another value is refused by name, before anything is built


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Return the configuration of a short run, and its checkpoint."""
    settings = config(tmp_path_factory.mktemp("runs"), name="first", total_timesteps=32 * 16 * 2)
    return settings, train(settings, make_envs=LineWorld).checkpoint


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_steps": 32}, "num_steps: expected 16, as in the run to resume, got 32; leave out --num-steps, or begin"),
        ({"num_envs": 16}, "num_envs: expected 32, .* got 16; leave out --num-envs"),
        ({"curriculum": "progress"}, "curriculum: expected even, .* got progress; leave out --curriculum"),
        ({"starts": ("known", "a/b.replay")}, "starts: expected none, .* got known a/b.replay; leave out --starts"),
        ({"levels": ("jumps", "hazards")}, "levels: expected first-steps, .* got jumps hazards; leave out --levels"),
        ({"held_out": 0.3}, "held_out: expected 0.0, .* got 0.3; leave out --held-out"),
        ({"split_seed": 2}, "split_seed: expected 0, .* got 2; leave out --split-seed"),
        ({"mirrored": True}, "mirrored: expected False, .* got True; leave out --mirrored"),
        ({"hidden_size": 8}, "hidden_size: expected 32, .* got 8; leave out --hidden-size"),
        ({"frame_stack": 2}, "frame_stack: expected 1, .* got 2; leave out --frame-stack"),
        ({"warm_start": ("jumps",), "clone_kl_coef": 0.0}, "warm_start: expected none, .* got jumps"),
    ],
)
def test_other_values_are_refused_by_name(run, changes, message):
    settings, checkpoint = run
    with pytest.raises(CheckpointError, match=f"first/checkpoint.pt: {message}"):
        train(settings.replace(**changes), resume=checkpoint, make_envs=LineWorld)


def test_all_other_options_may_change(run):
    settings, checkpoint = run
    others = {
        "total_timesteps": 32 * 16 * 3,
        "learning_rate": 1e-4,
        "num_minibatches": 2,
        "update_epochs": 1,
        "max_frames": 100,
        "clone_kl_coef": 0.1,
        "levels": ("./elsewhere/first-steps",),  # the same names in another folder
        "name": "second",
    }
    fixed = {each.key for each in leaves(TrainConfig) if each.fixed}
    assert not {"total_timesteps", "learning_rate", "max_frames", "seed"} & fixed
    check_resumable(settings.replace(**others), load_checkpoint(checkpoint))
    ended = train(settings.replace(**others), resume=checkpoint, make_envs=LineWorld)
    assert ended.counters.timesteps == others["total_timesteps"]


def test_the_clone_of_a_warm_start_stays(run, tmp_path):
    settings, _ = run
    warm = settings.replace(warm_start=("jumps",), output=tmp_path)
    saved = saved_with(run, warm, tmp_path)
    content = load_checkpoint(saved)
    check_resumable(warm.replace(clone_kl_coef=0.1), content)
    with pytest.raises(CheckpointError, match=r"clone_kl_coef: expected 0.3, .* got 0.0; leave out --clone-kl-coef"):
        check_resumable(warm.replace(clone_kl_coef=0.0), content)


def test_names_are_those_of_options():
    assert option("shared_trunk", False) == "--no-shared-trunk"
    assert option("shared_trunk", True) == "--shared-trunk"
    assert option("observations", ("game_state", "locals")) == "--observations game_state locals"
    assert option("locals_size", 21) == "--locals-size 21"


def saved_with(run, settings, folder):
    """Write the checkpoint of a run as if it had these options; return its path."""
    path = folder / "checkpoint.pt"
    save_checkpoint(path, dataclasses.replace(load_checkpoint(run[1]), train_config=flat(settings)))
    return path
