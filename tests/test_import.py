"""Side effects of importing the package, in a fresh interpreter."""

import ast
import collections
import importlib
import importlib.resources
import inspect
import json
import pkgutil
import re
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

import nclone_env
from nclone_env import _faces
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


def modules_after(*codes: str) -> list[set[str]]:
    """Return the names of all modules that a fresh interpreter has loaded after each piece of code."""
    shown = "\nsys.stderr.write(json.dumps(sorted(sys.modules)) + '\\n')\n"
    script = "import sys, json\n" + "".join(code + shown for code in codes)
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [set(json.loads(line)) for line in done.stderr.splitlines() if line.startswith('["')]


@pytest.fixture(scope="module")
def imports() -> list[ast.ImportFrom]:
    """The imports of names by all modules of the package; to read all of their code would take seconds."""
    statement = re.compile(r"^[ ]*(from nclone_env[\w.]* import (?:\([^)]*\)|.+))$", re.MULTILINE)
    found = [text for path in PACKAGE.rglob("*.py") for text in statement.findall(path.read_text())]
    assert len(found) > 500
    return [node for text in found for node in ast.parse(text).body if isinstance(node, ast.ImportFrom)]


def command(*words: str) -> str:
    """Return code that runs the program."""
    return (
        "from contextlib import suppress\n"
        "from nclone_env.cli.app import main\n"
        f"with suppress(SystemExit): assert main({list(words)}) == 0"
    )


def test_the_package_and_each_command_import_what_they_need_and_little_else():
    imported, version, explained, listed, trained, shown, completed = modules_after(
        "import nclone_env",
        command("--version"),
        command("--help"),
        command("levels", "list", "jumps"),
        command("train", "--help"),
        command("benchmark", "show", "Builtin-v1"),
        command("--tyro-print-completion", "bash"),
    )
    assert not imported & {"gymnasium", "numpy"}
    assert {name for name in imported if name.startswith("nclone_env")} == {
        "nclone_env",
        "nclone_env._faces",
        "nclone_env._version",
        "nclone_env.env",
        "nclone_env.env.ids",
    }
    assert "nclone_env.cli.app" in version
    assert not version & {*HEAVY, *COMPILER}
    assert not explained & ({*HEAVY, *COMPILER} - {"tyro"})
    assert "nclone_env.cli.levels" in listed
    assert "nclone_env.cli.train" not in listed
    assert "nclone_env.cli.train" in trained
    assert not trained & {"torch", "cv2", "nclone_env.gallery", "nclone_env.cli.profile"}
    assert "nclone_env.benchmark.scores" in shown & completed
    assert "torch" not in shown | completed


def test_an_environment_imports_the_compiler_but_no_optional_part_and_a_name_on_its_first_use():
    used, planned, searched = modules_after(
        "from nclone_env import NPlusPlusEnv, NPlusPlusVectorEnv",
        "import nclone_env.plan",
        "assert nclone_env.plan.make_table(1).keys.tolist() == [0] * 8",
    )
    assert {"numba", "nclone_env.env.vector"} <= used
    assert not used & set(HEAVY)
    optional = ("nclone_env.train", "nclone_env.cli", "nclone_env.memory.", "nclone_env.replay")
    measured = {"nclone_env.memory.measure", "nclone_env.memory.measure.tree"}
    assert {name for name in used if name.startswith(optional)} == measured
    assert "nclone_env.render.raster" not in used
    assert "nclone_env.plan.kernels" not in planned
    assert "nclone_env.plan.kernels" in searched
    assert "nclone_env.plan.solver" not in searched


REGISTRY = """
assert list(filter(lambda name: "NPlusPlus" in name, gymnasium.registry)) == list(nclone_env.env.ids.REGISTERED)
assert gymnasium.__spec__.loader is gymnasium.__loader__ is find_spec("gymnasium").loader
assert [type(finder).__module__ for finder in sys.meta_path if "nclone" in type(finder).__module__] == []
"""


@pytest.mark.parametrize(
    "imports",
    [
        "import nclone_env, gymnasium",
        "import gymnasium, nclone_env",
        "import nclone_env; find_spec('gymnasium'); reload(nclone_env); import gymnasium",
        pytest.param("import nclone_env, gymnasium; reload(gymnasium)", marks=pytest.mark.slow),
    ],
)
def test_the_ids_are_registered_whichever_is_imported_first(imports):
    modules_after(f"from importlib import reload\nfrom importlib.util import find_spec\n{imports}\n{REGISTRY}")


def test_the_ids_of_both_orders_make_environments_of_the_class():
    (used,) = modules_after(
        "import nclone_env, gymnasium\n"
        "name, options = nclone_env.env.ENVIRONMENT_ID, {'observations': 'game_state'}\n"
        "env = gymnasium.make(name, **options)\n"
        "assert isinstance(env.unwrapped, nclone_env.NPlusPlusEnv)\n"
        "envs = gymnasium.make_vec(name, 2, vectorization_mode='vector_entry_point', **options)\n"
        "assert isinstance(envs.unwrapped, nclone_env.NPlusPlusVectorEnv)"
    )
    assert "nclone_env.env.single" in used


def test_without_the_package_gymnasium_knows_no_id_of_it():
    modules_after("import gymnasium\nassert not [name for name in gymnasium.registry if 'NPlusPlus' in name]")


@pytest.mark.parametrize("source", ["named = 1", "raise ImportError('broken')"])
def test_another_module_of_the_name_of_gymnasium_is_left_alone(source, tmp_path):
    (tmp_path / "gymnasium.py").write_text(source)
    code = (
        f"import nclone_env\nsys.path.insert(0, {str(tmp_path)!r})\n"
        "try:\n    import gymnasium\n    assert gymnasium.named\n"
        "except ImportError as error:\n    assert str(error) == 'broken'"
    )
    modules_after(code)


def test_memory_is_profiled_without_gymnasium_and_the_compiler():
    (used,) = modules_after(
        "from nclone_env.memory import profile\n"
        "with profile() as watch:\n    watch.step()\n"
        "assert 'UNDECIDED' in str(watch)"
    )
    assert not used & {*HEAVY, *COMPILER, "gymnasium"}


def test_gymnasium_imports_the_package_by_the_name_of_the_environment_without_opencv():
    """No pictures are asked for. The package is registered once."""
    (used,) = modules_after(
        "import gymnasium\n"
        "env = gymnasium.make('nclone_env:nclone/NPlusPlus-v0', observations='game_state')\n"
        "assert env.reset(seed=1)[0]['game_state'].shape == (30,)\n"
        "env.step(2)\n"
        "import importlib, nclone_env\n"
        "importlib.reload(nclone_env)\n"
        "assert [name for name in gymnasium.registry if 'NPlusPlus' in name] == list(nclone_env.env.ids.REGISTERED)"
    )
    assert not used & set(HEAVY)


@pytest.mark.skipif(getattr(sys, "_is_gil_enabled", lambda: True)(), reason="this interpreter has a lock")
def test_the_package_and_its_requirements_leave_the_lock_of_the_interpreter_off():
    modules_after(
        "import sys, nclone_env\n"
        "from nclone_env import benchmark, plan, replay\n"
        "nclone_env.NPlusPlusVectorEnv(num_envs=2, levels='jumps', observations='game_state').reset(seed=0)\n"
        "assert not sys._is_gil_enabled()"
    )


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
    assert dir(package) == sorted(public)
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
    names = set(dir(package)).union(*imported_for_types(Path(package.__file__).read_text()))
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


def test_the_package_is_marked_as_typed():
    assert (importlib.resources.files("nclone_env") / "py.typed").is_file()


OPTIONAL = ("torch", "threadpoolctl", "stable_baselines3", "pufferlib", "cv2", "pygame", "tensorboard", "matplotlib")
STAR = """
import contextlib, importlib, nclone_env, sys
from nclone_env.errors import MissingExtraError

sys.modules.update(dict.fromkeys({missing}))
for face in {faces}:
    names = {{}}
    exec(f"from {{face}} import *", names)
    package, names = importlib.import_module(face), names.keys() - {{"__builtins__"}}
    assert names == set(package.__all__) <= set(dir(package)), names
    for name in dir(package):
        with contextlib.suppress(MissingExtraError):
            getattr(package, name)
            assert name in names, name
print(sorted(nclone_env.train.__all__), sorted(nclone_env.__all__))
"""


@pytest.mark.parametrize(
    "missing", [OPTIONAL, *(pytest.param(some, marks=pytest.mark.slow) for some in (OPTIONAL[1:4], ("cv2",)))]
)
def test_a_star_imports_all_that_optional_dependencies_allow(missing):
    """A name that is left out says what to install when it is asked for; none is left out otherwise."""
    faces = [face for face in FACES if dir(importlib.import_module(face))]
    program = STAR.format(missing=missing, faces=faces)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert ("'ActorCritic'" in done.stdout) is ("torch" not in missing)
    assert ("'load_policy'" in done.stdout) is not bool({"torch", "threadpoolctl"} & set(missing))
    assert "'TrainConfig'" in done.stdout
    assert "'solve'" in done.stdout


def test_a_star_hides_no_fault_of_the_package():
    def fails(name: str | None) -> None:
        raise ImportError(name=name)

    assert not _faces._is_there(lambda: fails("torch.fx"), "nclone_env.train")
    assert not _faces._is_there(lambda: fails(None), "nclone_env.train")
    with pytest.raises(ImportError):
        _faces._is_there(lambda: fails("nclone_env.sim"), "nclone_env.train")
