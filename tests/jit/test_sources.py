"""What the digests of the package and of kernels outside it depend on."""

import importlib.util
import re
import shutil

import pytest

from nclone_env.jit import kernel, source_digest, sources
from nclone_env.jit.sources import code_digest
from nclone_env.sim.tick import tick

from ..processes import REPOSITORY

KERNELS = """
import math
import numpy as np
from nclone_env.jit import kernel
import user_helpers
from user_helpers import OFFSET, TABLE, shifted

LIMIT = 3.0

@kernel
def total(x):  # a comment
    return shifted(x) + math.sqrt(LIMIT) * user_helpers.scaled(x) + TABLE[0] + OFFSET + late(x)

@kernel
def late(x):
    return x + 1

def unrelated(x):
    return x
"""
HELPERS = """
import numpy as np
from nclone_env.jit import kernel

OFFSET, FACTOR = 2, 5.0
TABLE = np.array([1.0, 2.0])

@kernel
def shifted(x):
    return inner(x) + 1.0

@kernel
def inner(x):
    return x * x

@kernel
def scaled(x):
    return x * FACTOR

def unrelated(x):
    return x
"""


def test_the_digest_of_the_package_changes_with_any_source_file(tmp_path, monkeypatch):
    package = tmp_path / "package"
    shutil.copytree(REPOSITORY / "nclone_env", package, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(sources, "_PACKAGE", package)
    digests = set()
    for change in ("", "# a comment\n", "# another\n"):
        path = package / "sim" / "geometry.py"
        path.write_text(path.read_text() + change)
        digests.add(source_digest.__wrapped__())
    (package / "new.py").write_text("")
    digests.add(source_digest.__wrapped__())
    assert len(digests) == 4
    assert all(len(digest) == 16 and int(digest, 16) >= 0 for digest in digests)


def load(folder, monkeypatch, name: str, source: str):
    """Import a module from source that is also a file."""
    path = folder / f"{name}.py"
    path.write_text(source)
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(importlib.import_module("sys").modules, name, module)
    exec(compile(source, str(path), "exec"), module.__dict__)
    return module


@pytest.fixture
def digest_of(tmp_path, monkeypatch):
    """Return the digest of ``total`` with two sources."""

    def digest(kernels: str = KERNELS, helpers: str = HELPERS) -> str | None:
        load(tmp_path, monkeypatch, "user_helpers", helpers)
        total = load(tmp_path, monkeypatch, "user_kernels", kernels).total
        return code_digest(getattr(total, "py_func", total))

    return digest


def test_kernels_of_the_package_have_its_digest():
    assert code_digest(getattr(tick, "py_func", tick)) == source_digest()


@pytest.mark.parametrize(
    ("old", "new"),
    [("LIMIT = 3.0", "LIMIT = 4.0"), ("shifted(x) +", "shifted(x) -"), ("x + 1", "x + 2"), ("x + 1", "LIMIT + 1")],
)
def test_a_digest_changes_with_the_file_of_the_kernel(digest_of, old, new):
    assert old in KERNELS
    assert digest_of(KERNELS.replace(old, new)) != digest_of()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("OFFSET, FACTOR = 2,", "OFFSET, FACTOR = 3,"),
        ("5.0", "6.0"),
        ("[1.0, 2.0]", "[1.0, 3.0]"),
        ("[1.0, 2.0]", "[1, 2]"),
        ("inner(x) + 1.0", "inner(x) + 2.0"),
        ("x * x", "x + x"),
        ("x * FACTOR", "x + FACTOR"),
    ],
)
def test_a_digest_changes_with_the_file_of_a_helper(digest_of, old, new):
    assert old in HELPERS
    assert digest_of(helpers=HELPERS.replace(old, new)) != digest_of()


def test_a_digest_ignores_what_the_kernel_does_not_use(digest_of):
    digests = {
        digest_of(),
        digest_of(),
        digest_of(KERNELS.replace("# a comment", "# another")),
        digest_of(KERNELS.replace("def unrelated(x):\n    return x", "def unrelated(x):\n    return 2 * x")),
        digest_of(helpers=HELPERS.replace("def unrelated(x):\n    return x", "UNRELATED = 1")),
    }
    assert len(digests) == 1
    assert None not in digests


def test_a_digest_changes_with_the_package(digest_of, monkeypatch):
    before = digest_of()
    monkeypatch.setattr(sources, "source_digest", lambda: "another")
    assert digest_of() != before


def test_functions_without_a_file_have_no_digest():
    scope: dict = {"__name__": "__main__"}
    exec("def f(x):\n    return x", scope)
    assert code_digest(scope["f"]) is None


def make_adder(value):
    def adder(x):
        return x + value if isinstance(value, int) else value(x)

    return adder


def test_closures_count_and_kernels_in_them_have_no_digest():
    assert code_digest(make_adder(1)) == code_digest(make_adder(1))
    assert code_digest(make_adder(1)) != code_digest(make_adder(2))
    assert code_digest(make_adder(kernel(make_adder(1)))) is None
    assert code_digest(make_adder(object())) is None  # it can only be told by its address


@pytest.mark.parametrize("folder", sources._WITHOUT_KERNELS)
def test_folders_outside_the_digest_contain_no_kernels(folder):
    files = sorted((sources._PACKAGE / folder).glob("**/*.py"))
    assert files
    imports = re.compile(r"^\s*(from|import) (numba|nclone_env\.jit import .*kernel)", re.MULTILINE)
    assert imports.search("from nclone_env.jit import called_kernel, kernel\n")  # negative control
    assert not [path.name for path in files if imports.search(path.read_text())]


def test_only_folders_with_kernels_are_in_the_digest(tmp_path, monkeypatch):
    monkeypatch.setattr(sources, "_PACKAGE", tmp_path)
    for folder in ("cli", "memory", "sim"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "a.py").write_text("x = 1")
    before = source_digest.__wrapped__()
    for folder in ("cli", "memory"):
        (tmp_path / folder / "a.py").write_text("x = 2")
    assert source_digest.__wrapped__() == before
    (tmp_path / "sim" / "a.py").write_text("x = 2")
    assert source_digest.__wrapped__() != before
