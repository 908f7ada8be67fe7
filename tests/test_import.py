"""Side effects of importing the package, in a fresh interpreter."""

from __future__ import annotations

import ast
import collections
import importlib
import importlib.resources
import inspect
import json
import pkgutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

import nclone_env
from nclone_env.errors import MissingExtraError

ROOT = Path(__file__).parents[1]
HEAVY = ("torch", "pygame", "cv2", "matplotlib", "psutil", "imageio_ffmpeg", "tensorboard", "tyro")
COMPILER = ("numba", "llvmlite", "scipy")  # Numba imports SciPy if it is there
PACKAGE = Path(nclone_env.__file__).parent
FACES = tuple(
    ".".join(("nclone_env", *path.parent.relative_to(PACKAGE).parts))
    for path in sorted(PACKAGE.rglob("__init__.py"))
    if "= face(__name__)" in path.read_text()
)


def modules_after(code: str) -> set[str]:
    """Return the names of all modules that a fresh interpreter has loaded after running the code."""
    script = f"import sys, json\n{code}\nprint(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout.splitlines()[-1]))


@pytest.fixture(scope="module")
def imported() -> set[str]:
    return modules_after("import nclone_env")


@pytest.fixture(scope="module")
def imports() -> list[ast.ImportFrom]:
    """The imports of names by all modules of the package."""
    trees = [ast.parse(path.read_text()) for path in PACKAGE.rglob("*.py")]
    return [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]


def test_importing_the_package_imports_gymnasium_and_little_else(imported):
    assert "gymnasium" in imported
    assert not imported & {*HEAVY, *COMPILER}
    assert {name for name in imported if name.startswith("nclone_env")} == {
        "nclone_env",
        "nclone_env._faces",
        "nclone_env._version",
        "nclone_env.env",
        "nclone_env.env.ids",
    }


def test_an_environment_imports_the_compiler_but_no_optional_part_of_the_package():
    used = modules_after("from nclone_env import NPlusPlusEnv, NPlusPlusVectorEnv")
    assert {"numba", "nclone_env.env.vector"} <= used
    assert not used & set(HEAVY)
    optional = ("nclone_env.train", "nclone_env.cli", "nclone_env.memory.", "nclone_env.replay")
    assert [name for name in used if name.startswith(optional)] == ["nclone_env.memory.tree"]
    assert "nclone_env.render.raster" not in used


@pytest.mark.parametrize(
    ("arguments", "missing"),
    [
        (["--version"], {*HEAVY, *COMPILER}),
        (["--help"], {*HEAVY, *COMPILER} - {"tyro"}),
        (["train", "--help"], {"torch", "cv2", "nclone_env.gallery", "nclone_env.cli.profile"}),
        (["benchmark", "show", "Builtin-v1"], {"torch"}),
        (["--tyro-print-completion", "bash"], {"torch"}),
    ],
)
def test_the_program_imports_what_the_command_needs(arguments, missing):
    used = modules_after(
        "from contextlib import suppress\n"
        "from nclone_env.cli.app import main\n"
        f"with suppress(SystemExit): main({arguments})"
    )
    assert "nclone_env.cli.app" in used
    assert not used & missing


def test_the_program_imports_a_command_that_is_run():
    used = modules_after("from nclone_env.cli.app import main\nmain(['levels', 'list', 'jumps'])")
    assert "nclone_env.cli.levels" in used
    assert "nclone_env.cli.train" not in used


def test_gymnasium_imports_the_package_by_the_name_of_the_environment_without_opencv():
    """No pictures are asked for. The package is registered once."""
    code = (
        "import gymnasium\n"
        "env = gymnasium.make('nclone_env:nclone/NPlusPlus-v0', observations='game_state')\n"
        "assert env.reset(seed=1)[0]['game_state'].shape == (30,)\n"
        "env.step(2)\n"
        "import importlib, nclone_env\n"
        "importlib.reload(nclone_env)\n"
        "assert [name for name in gymnasium.registry if 'NPlusPlus' in name] == list(nclone_env.env.ids.REGISTERED)"
    )
    assert not modules_after(code) & set(HEAVY)


def imported_for_types(source: str) -> list[dict[str, str]]:
    """Return the module of each name that is imported for type checkers alone, one mapping for each block."""
    blocks = [node for node in ast.parse(source).body if isinstance(node, ast.If)]
    assert {ast.unparse(block.test) for block in blocks} == {"TYPE_CHECKING"}
    froms = [[node for node in block.body if isinstance(node, ast.ImportFrom)] for block in blocks]
    names = [name.name for nodes in froms for node in nodes for name in node.names]
    assert len(set(names)) == len(names)  # of two homes of a name one would be hidden
    return [{name.name: str(node.module) for node in nodes for name in node.names} for nodes in froms]


@pytest.mark.parametrize("name", FACES)
def test_public_names_are_those_that_type_checkers_see(name):
    package = importlib.import_module(name)
    public, *others = imported_for_types(Path(package.__file__).read_text())
    assert sorted(package.__all__) == list(package.__all__) == sorted(public)
    assert set(package.__all__) <= set(dir(package))
    homes = dict(collections.ChainMap(public, *others))
    assert len(homes) == len(public) + sum(map(len, others))
    for name, home in homes.items():
        with suppress(MissingExtraError):  # of PufferLib
            found = getattr(package, name)
            assert found is getattr(importlib.import_module(home), name)
            assert found.__doc__ or name not in public or not inspect.isroutine(found)


@pytest.mark.parametrize("name", FACES)
def test_no_module_hides_a_public_name(name):
    package = importlib.import_module(name)
    names = set(package.__all__).union(*imported_for_types(Path(package.__file__).read_text()))
    modules = {module.name for module in pkgutil.iter_modules(package.__path__)} & names
    assert modules == ({"train"} if name == "nclone_env" else set())
    assert callable(nclone_env.train)  # that one is a package and its function


@pytest.mark.parametrize("name", FACES)
def test_what_modules_import_from_a_face_is_on_it(name, imports):
    """Type checkers do not see it, since a face has ``__getattr__``."""
    package = importlib.import_module(name)
    known = set(vars(package)).union(*imported_for_types(Path(package.__file__).read_text()))
    imported = {part.name for node in imports if node.module == name for part in node.names}
    modules = {module.name for module in pkgutil.iter_modules(package.__path__)}
    assert imported <= known | modules


def test_names_are_imported_on_first_use():
    code = (
        "import nclone_env.plan\n"
        "assert 'nclone_env.plan.kernels' not in sys.modules\n"
        "assert nclone_env.plan.make_table(1).keys.tolist() == [0] * 8"
    )
    used = modules_after(code)
    assert "nclone_env.plan.kernels" in used
    assert "nclone_env.plan.solver" not in used


def test_names_that_do_not_exist():
    assert not hasattr(nclone_env, "NPlusPlus")
    with pytest.raises(AttributeError, match="module 'nclone_env' has no attribute 'NPlusPlus'"):
        nclone_env.NPlusPlus  # noqa: B018
    with pytest.raises(ImportError, match="cannot import name 'NPlusPlus'"):
        from nclone_env import NPlusPlus  # noqa: F401


def test_the_package_is_marked_as_typed():
    assert (importlib.resources.files("nclone_env") / "py.typed").is_file()
