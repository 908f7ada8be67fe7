"""Policies that ship with the package, and those on a hub.

The hub is a local folder here, behind a stand-in for the functions of ``huggingface_hub``.
"""

import hashlib
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

import nclone_env
from nclone_env.benchmark import verify
from nclone_env.cli.app import main
from nclone_env.errors import CheckpointError, ConfigError
from nclone_env.train import bundled_names, evaluate, load_checkpoint, load_policy, policy_card, policy_file
from nclone_env.train.policies.files import BUNDLED

NAMES = bundled_names()


class Refused(OSError):
    """As the library's errors of HTTP."""


class Hub(ModuleType):
    """Stores repositories in a folder, and links what is downloaded, as the cache of the library does."""

    errors = SimpleNamespace(HfHubHTTPError=Refused, LocalTokenNotFoundError=Refused)

    def __init__(self, folder: Path):
        super().__init__("huggingface_hub")
        self.folder, self.cache = folder / "hub", folder / "cache"
        self.cache.mkdir()

    def create_repo(self, repo_id: str, exist_ok: bool = False) -> None:
        if repo_id.startswith("other/"):
            raise Refused("403: you are not other")
        (self.folder / repo_id).mkdir(parents=True, exist_ok=exist_ok)

    def upload_file(self, *, path_or_fileobj: Any, path_in_repo: str, repo_id: str) -> None:
        data = path_or_fileobj if isinstance(path_or_fileobj, bytes) else Path(path_or_fileobj).read_bytes()
        (self.folder / repo_id / path_in_repo).write_bytes(data)

    def hf_hub_download(self, repo_id: str, filename: str) -> str:
        if not (self.folder / repo_id / filename).exists():
            raise Refused(f"404: no {repo_id}")
        shutil.copy(self.folder / repo_id / filename, self.cache / "digest")
        (self.cache / filename).unlink(missing_ok=True)
        (self.cache / filename).symlink_to(self.cache / "digest")
        return str(self.cache / filename)


@pytest.fixture
def hub(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "huggingface_hub", found := Hub(tmp_path))
    monkeypatch.chdir(tmp_path)
    return found


def test_a_policy_travels(hub, capsys):
    assert main(["policies", "push", "builtin", "hub:me/ninja"]) == 0
    assert "https://huggingface.co/me/ninja" in capsys.readouterr().out
    card = (hub.folder / "me" / "ninja" / "README.md").read_text()
    one, two = load_policy("builtin"), load_policy("hub:me/ninja")
    steps = one.checkpoint.counters["timesteps"]
    assert f"Trained on first-steps, jumps, hazards; {steps:,} steps, seed 0. Observes game_state" in card
    seen = {"game_state": np.random.default_rng(0).standard_normal((50, 30)).astype(np.float32)}
    assert policy_file("hub:me/ninja").read_bytes() == policy_file("builtin").read_bytes()
    np.testing.assert_array_equal(one.act(seen, seed=1), two.act(seen, seed=1))
    submit = ["benchmark", "submit", "hub:me/ninja", "--track", "Builtin-v1", "--budget", "100m"]
    assert main([*submit, "--output", "ninja.zip"]) == 0
    assert verify("ninja.zip").accepted
    assert main(["evaluate", "hub:me/ninja", "--episodes", "2", "--attempts", "1", "--no-video"]) == 0
    assert Path("runs/ninja-evaluation/evaluation.csv").exists()


@pytest.mark.parametrize("name", ["ninja", "hub:ninja", "hub:/ninja", "hub:me/", "hub:me/ninja/x"])
def test_names_have_one_form(name, hub, capsys):
    assert main(["policies", "push", "builtin", name]) == 2
    assert f"name: expected hub:USER/NAME, got '{name}'" in capsys.readouterr().err
    assert not hub.folder.exists()


def test_what_the_hub_refuses_is_an_error_of_one_line(hub, capsys):
    with pytest.raises(CheckpointError, match=r"hub:me/none: expected a policy on the hub, got: .*404: no me/none"):
        load_policy("hub:me/none")
    assert main(["policies", "push", "builtin", "hub:other/ninja"]) == 2
    assert "name: expected a repository to write to, got: '403: you are not other'" in capsys.readouterr().err


def test_there_are_policies_and_a_card_for_each():
    assert "builtin" in NAMES
    assert sorted(path.name for path in BUNDLED.iterdir()) == sorted(
        f"{name}{suffix}" for name in NAMES for suffix in (".pt", ".toml")
    )


@pytest.mark.parametrize("name", NAMES)
def test_the_card_is_of_this_file(name):
    data, card = (BUNDLED / f"{name}.pt").read_bytes(), policy_card(name)
    assert hashlib.sha256(data).hexdigest() == card["sha256"]
    assert hashlib.sha256(data[:-1] + bytes([data[-1] ^ 1])).hexdigest() != card["sha256"]
    assert len(data) < 1_000_000
    assert card["licence"] == "MIT"
    for row in card["scores"]:
        assert 0 <= row["low"] <= row["sampled"] <= row["high"] <= 1
        assert row["sampled"] <= row["any"] <= 1


@pytest.mark.parametrize("name", NAMES)
def test_the_file_holds_what_plays_and_no_more(name):
    found, card = load_checkpoint(policy_file(name)), policy_card(name)
    assert found.counters["timesteps"] == card["steps"]
    assert found.train_config["seed"] == card["seed"]
    for part in (found.optimiser, found.episodes, found.environments, found.selection, found.reference):
        assert part == {}
    assert found.held_out == {}
    assert all(array.numel() == 0 for array in found.observations.values())


@pytest.mark.parametrize("name", NAMES)
def test_a_policy_wins_the_sample_of_its_card(name):
    tried = policy_card(name)["sample"]
    policy = nclone_env.load_policy(name, levels=tried["levels"])
    results = evaluate(policy.network, policy.environment, "sampled", tried["episodes"], tried["seed"])
    won = [round(result.success_rate * result.episodes) for result in results]
    # rounding on another processor may change a sampled action, and with it an episode
    assert sum(abs(one - other) for one, other in zip(won, tried["won"], strict=True)) <= 2


def test_a_checkpoint_of_the_user_has_precedence(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert policy_file("builtin") == BUNDLED / "builtin.pt"
    (tmp_path / "builtin").mkdir()
    assert policy_file("builtin") == BUNDLED / "builtin.pt"  # the folder of something else
    (tmp_path / "builtin" / "checkpoint.pt").touch()
    assert policy_file("builtin") == tmp_path.relative_to(tmp_path) / "builtin" / "checkpoint.pt"
    for path in ("./builtin.pt", BUNDLED / "nosuch.pt", "../policies/builtin"):
        with pytest.raises(CheckpointError, match="or name a bundled policy: builtin"):
            policy_file(path)


def test_an_unknown_name_is_answered_with_the_known_ones():
    with pytest.raises(CheckpointError, match=r"or name a bundled policy: builtin.*did you mean 'builtin'\?$"):
        nclone_env.load_policy("bulitin")
    with pytest.raises(ConfigError, match=r"^policy: expected one of builtin.*; did you mean 'builtin'\?$"):
        policy_card("bulitin")


def test_the_commands_take_the_name(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["evaluate", "builtin", "--levels", "first-steps/01-walk", "--episodes", "4", "--no-video"]) == 0
    assert "100.0%" in capsys.readouterr().out
    assert (tmp_path / "runs" / "builtin-evaluation" / "evaluation.txt").is_file()
    assert main(["watch", "builtin", "--levels", "first-steps/01-walk", "--output", "walk.gif"]) == 0
    options = ["--levels", "first-steps/01-walk", "--num-envs", "16", "--num-steps", "16", "--total-timesteps", "256"]
    assert main(["train", "--init", "builtin", *options, "--episodes", "4", "--no-video"]) == 0
    assert {path.suffix for path in BUNDLED.iterdir()} == {".pt", ".toml"}


def test_the_list_and_the_card_are_printed(capsys):
    assert main(["policies", "list"]) == 0
    listed = capsys.readouterr().out
    assert all(f"\n{name} " in listed for name in NAMES)
    assert listed in (Path(__file__).parents[3] / "docs" / "training" / "use.md").read_text()
    assert main(["policies", "show", "builtin"]) == 0
    shown = capsys.readouterr().out
    card = tomllib.loads((BUNDLED / "builtin.toml").read_text())
    assert card["sha256"] in shown
    assert card["commands"][0] in shown


def test_a_folder_of_runs_is_answered_with_a_run_in_it(tmp_path):
    for name in ("b", "a"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "checkpoint.pt").touch()
    with pytest.raises(CheckpointError, match=f"or a checkpoint in it, such as {tmp_path}/a; or name a bundled"):
        policy_file(tmp_path)


def test_a_text_is_no_checkpoint(tmp_path):
    (tmp_path / "run.toml").write_text("seed = 1")
    with pytest.raises(CheckpointError, match="got a text that begins with 'seed = 1'; pass the folder of a run or"):
        policy_file(tmp_path / "run.toml")


def test_files_of_other_kinds_are_named_where_the_trainer_is_not_installed(tmp_path):
    program = "import sys; sys.modules['threadpoolctl'] = None; " + (
        "from nclone_env.cli.app import main; print([main(['evaluate', path]) for path in sys.argv[1:]])"
    )
    expected = {"_stable_baselines3_version": "a model of Stable-", "submission.json": "a submission of"}
    for member, said in expected.items():
        with zipfile.ZipFile(tmp_path / member, "w") as archive:
            archive.writestr(member, "2.9.2")
        with pytest.raises(CheckpointError, match=f"expected a checkpoint of nclone_env, got {said}"):
            policy_file(tmp_path / member)
    command = [sys.executable, "-c", program, *(tmp_path / member for member in expected), "game-motion"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.stdout == "[2, 2, 2]\n"
    for line, said in zip(done.stderr.splitlines(), [*expected.values(), ".[train]"], strict=True):
        assert said in line
