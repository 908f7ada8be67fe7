"""Side effects of importing the package, in a fresh interpreter."""

from __future__ import annotations

import importlib.resources
import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
HEAVY = ("torch", "pygame", "cv2", "matplotlib", "psutil", "imageio_ffmpeg", "tensorboard", "tyro")


def modules_after(code: str) -> set[str]:
    """Return the names of all modules that a fresh interpreter has loaded after running the code."""
    script = f"import sys, json\n{code}\nprint(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout.splitlines()[-1]))


@pytest.fixture(scope="module")
def imported() -> set[str]:
    return modules_after("import nclone_env")


def test_importing_the_package_imports_nothing_heavy(imported):
    assert {"numba", "gymnasium", "nclone_env.env.vector"} <= imported
    assert not imported & set(HEAVY)


def test_importing_the_package_imports_no_optional_part_of_it(imported):
    optional = [
        name
        for name in imported
        if name.startswith(("nclone_env.train", "nclone_env.cli", "nclone_env.memory.", "nclone_env.replay"))
    ]
    assert optional == []
    assert "nclone_env.render.glyphs" not in imported


def test_playing_without_pictures_does_not_import_opencv():
    code = (
        "import nclone_env\n"
        "env = nclone_env.create_environment(nclone_env.EnvironmentConfig.for_training())\n"
        "env.reset(seed=1)\n"
        "env.step(2)"
    )
    assert not modules_after(code) & set(HEAVY)


def test_the_package_registers_itself_once():
    code = (
        "import importlib, gymnasium, nclone_env\n"
        "importlib.reload(nclone_env)\n"
        "assert [name for name in gymnasium.registry if 'NPlusPlus' in name] == list(nclone_env.env.create.REGISTERED)"
    )
    modules_after(code)


def test_gymnasium_can_import_the_package_by_the_name_of_the_environment():
    code = (
        "import gymnasium\n"
        "env = gymnasium.make('nclone_env:nclone/NPlusPlus-v0', observations='game_state')\n"
        "assert env.reset(seed=1)[0]['game_state'].shape == (30,)"
    )
    assert "nclone_env" in modules_after(code)


def test_all_public_names_exist():
    import nclone_env

    assert sorted(nclone_env.__all__) == list(nclone_env.__all__)
    for name in nclone_env.__all__:
        assert getattr(nclone_env, name).__doc__


def test_the_package_is_marked_as_typed():
    assert (importlib.resources.files("nclone_env") / "py.typed").is_file()
