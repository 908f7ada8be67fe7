"""What the digests of the package and of kernels outside it depend on."""

import ast
import importlib.util
import re
import sys
from types import SimpleNamespace
from typing import NamedTuple

import numba
import numpy as np
import pytest

from nclone_env.jit import kernel, module_digest, sources
from nclone_env.jit.sources import code_digest, fields_of, identity, kernels_digest

from ..processes import run_copy

KERNELS = """
import math
import numpy as np
from nclone_env.jit import kernel
import user.helpers as user_helpers
from user.helpers import OFFSET, TABLE, shifted

LIMIT = 3.0

@kernel
def total(x):
    \"\"\"A sum.\"\"\"
    # a comment
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


PACKAGE = {
    "__init__": "VERSION = 1\n",
    "sim/__init__": "",
    "sim/tick": "from package import constants\n",
    "sim/inside/touch": "def call():\n    from package.late import x\n",
    "constants": "from package.sim import tick\n",
    "late/__init__": "",
    "late/deep": "",
    "other": "from package.sim import tick\n",
}


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Write a package whose digests are computed; return a function that edits a module and computes one again."""
    folder = tmp_path / "package"
    for name, text in PACKAGE.items():
        path = folder / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    monkeypatch.setattr(sources, "_PACKAGE", folder)
    import_, *others = (
        re.compile(pattern.pattern.replace("nclone_env", "package"))
        for pattern in (sources._IMPORT, *sources._OTHER_IMPORTS)
    )
    monkeypatch.setattr(sources, "_IMPORT", import_)
    monkeypatch.setattr(sources, "_OTHER_IMPORTS", others)
    monkeypatch.setattr(sources, "_source", sources._source.__wrapped__)

    def digest(edited: str | None = None) -> str:
        if edited is not None:
            (folder / f"{edited}.py").write_text(PACKAGE[edited] + "EDITED = 1\n")
        return module_digest.__wrapped__("package.sim.tick")

    return digest


@pytest.mark.parametrize(
    "edited", ["sim/__init__", "sim/tick", "sim/inside/touch", "constants", "late/__init__", "late/deep"]
)
def test_a_digest_changes_with_every_room_that_imports_reach(package, edited):
    before = package()
    assert package() == before
    assert package(edited) != before


@pytest.mark.parametrize("edited", ["__init__", "other"])
def test_a_digest_does_not_change_with_other_rooms(package, edited):
    before = package()
    assert package(edited) == before


@pytest.mark.parametrize(
    "spelling",
    [
        "from package.late import deep",
        "from package import late",
        "from package import late as other",
        "from package import constants, late",
        "from package import constants as other, late",
        "from package import constants \\\n    , late",
        "from package import (\n    constants,  # (first)\n    late,\n)",
        "from package \\\n    import late",
        "from package import *",
        "import package.late.deep",
        "import math, package.late",
        "import math, \\\n    package.late",
        "x = 1; import package.late",
        "from .. import late",
        "from ..late.deep import x",
    ],
)
def test_a_room_is_reached_by_every_spelling_of_an_import(package, tmp_path, spelling):
    (tmp_path / "package" / "sim" / "inside" / "touch.py").write_text(f"{spelling}\n")
    before = package()
    assert package("late/deep") != before


def test_no_module_imports_in_a_spelling_that_hides_its_rooms():
    """Which would make every cached array again after any edit."""
    for path in sources._PACKAGE.rglob("*.py"):
        tree = ast.parse(path.read_text())
        imports = [ast.unparse(node) for node in ast.walk(tree) if isinstance(node, (ast.Import, ast.ImportFrom))]
        assert not [text for text in imports if any(other.search(text) for other in sources._OTHER_IMPORTS)], path


def test_a_digest_does_not_change_with_a_comment(package, tmp_path):
    before, path = package(), tmp_path / "package" / "sim" / "inside" / "touch.py"
    source = path.read_text()
    path.write_text(f"# the first line\n{source}    # the last line\n")
    assert package() == before
    path.write_text(f'{source}\nTEXT = """\n# not a comment\n"""\n')
    assert package() != before
    path.write_text(f'{source}\nTEXT = """\n# no comment\n"""\n')
    other = package()
    path.write_text(f'{source}\nTEXT = """\n# not a comment\n"""\n')
    assert package() != other


DOCUMENTED = '''"""A module."""
VALUE = [
    """a text"""
]


def touch(
    x=(1, 2),
):
    """A function.

    # of two lines
    """
    return x, """a value"""


class Touch:
    """A class."""

    def touch(self) -> None:
        """A method."""
'''


@pytest.mark.parametrize("text", ["A module.", "A function.", "# of two lines", "A class.", "A method."])
def test_a_digest_does_not_change_with_a_docstring(package, tmp_path, text):
    path = tmp_path / "package" / "sim" / "inside" / "touch.py"
    path.write_text(DOCUMENTED)
    before = package()
    path.write_text(DOCUMENTED.replace(text, "# another\n"))
    assert package() == before


@pytest.mark.parametrize("text", ["a text", "a value", "(1, 2)"])
def test_a_digest_changes_with_a_value(package, tmp_path, text):
    path = tmp_path / "package" / "sim" / "inside" / "touch.py"
    path.write_text(DOCUMENTED)
    before = package()
    path.write_text(DOCUMENTED.replace(text, text[:-1]))
    assert package() != before


def without_docstrings(source: str) -> str:
    """Return the syntax tree of a source as text, in which documentation is empty."""
    tree = ast.parse(source.lstrip())
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(node) is not None:
            node.body[0] = ast.Expr(ast.Constant(""))
    return ast.dump(tree)


def test_what_a_digest_leaves_out_is_no_code():
    for path in (file for room in ("jit", "level", "sim") for file in (sources._PACKAGE / room).rglob("*.py")):
        source = path.read_text()
        assert without_docstrings(sources._without_comments(source)) == without_docstrings(source), path


def test_modules_that_only_keep_code_do_not_count():
    names = set(sources._modules_in("nclone_env.jit"))
    assert names > {"nclone_env.jit", "nclone_env.jit.inner", "nclone_env.jit.cuda.ptx"} | sources._WITHOUT_CODE
    assert all(sources._source(name) for name in sources._WITHOUT_CODE)


def test_modules_outside_the_package_have_the_digest_of_the_compiler():
    assert module_digest("json") == module_digest("user_kernels") != module_digest("nclone_env.sim.frame")


def load(folder, monkeypatch, name: str, source: str):
    """Import a module from source that is also a file."""
    path = folder / f"{name}.py"
    path.write_text(source)
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, name, module)
    exec(compile(source, str(path), "exec"), module.__dict__)
    return module


@pytest.fixture
def digest_of(tmp_path, monkeypatch):
    """Return the digest of ``total`` with two sources."""

    def digest(kernels: str = KERNELS, helpers: str = HELPERS) -> str | None:
        parent = SimpleNamespace(helpers=load(tmp_path, monkeypatch, "user.helpers", helpers))
        monkeypatch.setitem(sys.modules, "user", parent)
        total = load(tmp_path, monkeypatch, "user.kernels", kernels).total
        return code_digest(getattr(total, "py_func", total))

    return digest


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
        digest_of(KERNELS.replace("# a comment", "# another").replace("LIMIT = 3.0", "# a line\nLIMIT = 3.0")),
        digest_of(KERNELS.replace("A sum.", "Another.")),
        digest_of(KERNELS.replace("def unrelated(x):\n    return x", "def unrelated(x):\n    return 2 * x")),
        digest_of(helpers=HELPERS.replace("def unrelated(x):\n    return x", "UNRELATED = 1")),
    }
    assert len(digests) == 1
    assert None not in digests


@pytest.mark.parametrize(
    ("old", "new", "changes"),
    [
        ("5.0", "6.0", True),
        ("x * x", "x + x", True),
        ("[1.0, 2.0]", "[1.0, 3.0]", True),
        ("def unrelated(x):\n    return x", "UNRELATED = 1", False),
        ("def inner(x):\n", "def inner(x):\n    # a comment\n", False),
        ("A sum.", "Another.", False),
    ],
)
def test_a_digest_for_other_machines_is_that_of_the_sources(digest_of, old, new, changes):
    assert old in KERNELS + HELPERS
    digests = []
    for each in (old, new):
        digest_of(KERNELS.replace(old, each), HELPERS.replace(old, each))
        digests.append(kernels_digest([sys.modules["user.kernels"].total]))
    assert (digests[0] != digests[1]) is changes


def test_a_digest_changes_with_the_compiler(digest_of, monkeypatch):
    before = digest_of()
    for part in ("compiler_digest", "_compiler_code"):
        with monkeypatch.context() as patch:
            patch.setattr(sources, part, lambda: "another")
            assert digest_of() != before
    assert digest_of() == before


class Pair(NamedTuple):
    """Two numbers."""

    first: int
    second: int


class Swapped(NamedTuple):
    """The same in the other order."""

    second: int
    first: int


def test_names_of_fields_count_in_types_at_any_depth():
    pair, swapped = (numba.types.NamedTuple((numba.int64, numba.int64), kind) for kind in (Pair, Swapped))
    assert fields_of([pair, numba.int64]) == ["first", "second"]
    assert fields_of([numba.types.Tuple((numba.float64, swapped))]) == ["second", "first"]
    assert fields_of([numba.types.UniTuple(numba.int64, 2)]) == []


def test_functions_without_a_file_have_no_digest():
    scope: dict = {"__name__": "__main__"}
    exec("def f(x):\n    return x", scope)
    assert code_digest(scope["f"]) is None


def make_adder(value):
    def adder(x):
        return x + value if isinstance(value, int | tuple) else value(x)

    return adder


def test_closures_count_and_kernels_in_them_have_no_digest():
    assert code_digest(make_adder(1)) == code_digest(make_adder(1))
    assert code_digest(make_adder(1)) != code_digest(make_adder(2))
    first, other = np.zeros(2000), np.arange(2000) == 1000  # as text both are [0 0 ... 0 0]
    assert code_digest(make_adder((1, (first,)))) != code_digest(make_adder((1, (other * 1.0,))))
    assert code_digest(make_adder(kernel(make_adder(1)))) is None
    assert code_digest(make_adder(object())) is None  # it can only be told by its address


@pytest.mark.parametrize("before", ["", "# a comment\n\n"])
def test_an_identity_does_not_change_with_the_line(tmp_path, monkeypatch, before):
    named = [load(tmp_path, monkeypatch, "user_kernels", f"{text}def f(x):\n    return x") for text in ("", before)]
    assert identity(named[0].f) == identity(named[1].f)


def test_an_identity_tells_functions_of_one_name_apart(tmp_path, monkeypatch):
    source = "pair = [lambda x: x * 2.0, lambda x: x * 3.0, lambda x: x in {1, 2}, lambda x: x in {1, 3}]"
    identities = {identity(each) for each in load(tmp_path, monkeypatch, "user_kernels", source).pair}
    assert len(identities) == 4
    assert None not in identities


def test_an_identity_does_not_depend_on_the_order_of_a_set(tmp_path):
    (tmp_path / "named.py").write_text("def f(x):\n    return x in {'a', 'b', 'c', 'd'}\n")
    program = "import named; from nclone_env.jit.sources import identity; print(*{*'abcd'}, identity(named.f))"
    (tmp_path / "main.py").write_text(program)
    (*order, one), (*another_order, other) = (run_copy(tmp_path / "main.py")[0].split(maxsplit=4) for _ in range(2))
    assert order != another_order
    assert "named.f" in one
    assert one == other
