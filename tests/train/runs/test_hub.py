"""Policies on a hub, which is a local folder here behind a stand-in for the functions of ``huggingface_hub``."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from nclone_env.benchmark import verify
from nclone_env.cli.app import main
from nclone_env.errors import CheckpointError
from nclone_env.train import load_policy, policy_file


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


def test_the_extra_is_named(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    assert main(["watch", "hub:me/ninja"]) == 2
    assert 'huggingface-hub is not installed; run pip install ".[hub]"' in capsys.readouterr().err
