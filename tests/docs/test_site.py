"""The documentation site: its pages, the reference of every public name, links that leave it, and what pages load."""

import importlib
import importlib.util
import inspect
import re

import pytest

import nclone_env
from nclone_env import benchmark, errors, generate, memory, plan, replay
from nclone_env.cli.app import COMMANDS

from .pages import PAGES, ROOT
from .test_examples import blocks

DOCS = ROOT / "docs"
REFERENCE = "\n".join(page.read_text() for page in sorted((DOCS / "reference").glob("*.md")))
DOCUMENTED = re.findall(r"^(?:::: |\| `)(nclone_env[\w.]*)(?:$|` \|)", REFERENCE, flags=re.MULTILINE)
"""Names with docstrings, and numbers in tables."""

_spec = importlib.util.spec_from_file_location("hooks", DOCS / "_site" / "hooks.py")
assert _spec is not None
assert _spec.loader is not None
hooks = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(hooks)


def find(path: str) -> object:
    """Return the object of a dotted path: a module, or an attribute of one."""
    try:
        return importlib.import_module(path)
    except ModuleNotFoundError:
        module, _, name = path.rpartition(".")
        return getattr(find(module), name)


def imported_names(block: str) -> set[str]:
    """Return the dotted paths of what a block imports from the package."""
    found = re.findall(r"^from (nclone_env[\w.]*) import (.+)$", block, flags=re.MULTILINE)
    return {f"{module}.{name.strip()}" for module, names in found for name in names.split(",")}


def callables(thing: object) -> list[object]:
    """Return a function, or a class with its public methods."""
    methods = [member for name, member in inspect.getmembers(thing) if not name.startswith("_")]
    own = [thing, *methods] if inspect.isclass(thing) else [thing]
    ours = [each for each in own if str(getattr(each, "__module__", None)).startswith(nclone_env.__name__)]
    return [each for each in ours if inspect.isfunction(each) or each is thing]


def undescribed(thing: object) -> set[str]:
    """Return the arguments that the section of arguments of a docstring leaves out."""
    _, found, section = (inspect.getdoc(thing) or "").partition("\nArgs:\n")
    listed = re.findall(r"^    ([*\w, ]+):", re.split(r"\n\n(?=\w)", section)[0], flags=re.MULTILINE)
    names = {name.strip(" *") for line in listed for name in line.split(",")} | {"self"}
    return set(inspect.signature(thing).parameters) - names if found else set()


@pytest.mark.parametrize("path", [path for path in DOCUMENTED if "VecEnv" not in path])
def test_docstrings_in_the_reference_describe_all_arguments(path):
    """Those of other functions list only the arguments that need a word."""
    left_out = {each.__qualname__: undescribed(each) for each in callables(find(path))}
    assert not {name: names for name, names in left_out.items() if names}


def test_an_argument_that_is_left_out_is_found():
    def function(one, two, *others):
        """Do something.

        Args:
            one: a number.
            *others: more.

        Returns:
            Nothing.
        """

    assert undescribed(function) == {"two"}


@pytest.mark.parametrize(
    "package", [nclone_env, benchmark, generate, memory, plan, replay], ids=lambda package: package.__name__
)
def test_every_public_name_is_documented(package):
    public = {f"{package.__name__}.{name}" for name in dir(package)} - {"nclone_env.NcloneError"}
    assert public <= set(DOCUMENTED) | {f"nclone_env.{name}" for name in OF_PACKAGES}
    assert package is nclone_env or public == {path for path in DOCUMENTED if path.startswith(f"{package.__name__}.")}
    assert errors.__name__ in DOCUMENTED
    assert issubclass(nclone_env.NcloneError, Exception)


OF_PACKAGES = ("Policy", "TrainConfig", "load_policy", "solve", "train")
"""Names that are documented where they come from, ``nclone_env.train`` or ``nclone_env.plan``."""


def test_the_reference_lists_what_the_package_shows():
    page = (DOCS / "reference" / "README.md").read_text()
    listed = re.findall(r"`(\w+)`", page.partition("each on its first use:")[2].partition(". The last")[0])
    assert listed == dir(nclone_env)
    homes = ({path.rpartition(".")[2] for path in DOCUMENTED if path.startswith(home)} for home in HOMES)
    assert set(OF_PACKAGES) <= set().union(*homes)


HOMES = ("nclone_env.train.", "nclone_env.plan.")


def test_every_name_that_the_examples_import_is_documented():
    sources = [path.read_text() for path in (ROOT / "examples").glob("*.py")]
    sources += [block for page in PAGES for block in blocks(page, "python")]
    names = set().union(*map(imported_names, sources))
    assert "nclone_env.env.WON" in names, "examples are read too"
    wholes = {path for path in DOCUMENTED if (ROOT / f"{path.replace('.', '/')}.py").is_file()}  # modules
    names -= {f"nclone_env.{name}" for name in OF_PACKAGES}
    missing = {name for name in names if name not in DOCUMENTED and name.rpartition(".")[0] not in wholes}
    assert missing == set()


def test_every_documented_name_exists_and_is_described():
    assert len(set(DOCUMENTED)) == len(DOCUMENTED)
    for path in DOCUMENTED:
        found = find(path) if not path.endswith("NPlusPlusVecEnv") else object
        if inspect.ismodule(found) or inspect.isclass(found) or inspect.isroutine(found):
            assert inspect.getdoc(found), path


def test_names_are_found():
    assert find("nclone_env.sim.session.Session") is find("nclone_env.sim.session").Session
    assert imported_names("from nclone_env.a import b, c\nfrom os import d") == {"nclone_env.a.b", "nclone_env.a.c"}
    with pytest.raises(AttributeError):
        find("nclone_env.sim.session.Sessions")


def test_every_command_is_documented():
    names = {
        f"{name} {each}" if each else name
        for name, found in COMMANDS.items()
        for each in (found if isinstance(found, dict) else [""])
    }
    page = (DOCS / "reference" / "command-line.md").read_text()
    assert set(re.findall(r"^\| `([a-z0-9 -]+)` \|", page, flags=re.MULTILINE)) == names


def test_every_variable_of_the_environment_is_documented():
    sources = "".join(path.read_text() for path in (ROOT / "nclone_env").rglob("*.py"))
    page = (DOCS / "reference" / "command-line.md").read_text()
    assert set(re.findall(r"^\| `(NCLONE_\w+)` \|", page, flags=re.MULTILINE)) == set(
        re.findall(r"NCLONE_ENV_[A-Z_]+", sources)
    )


def test_links_that_leave_the_pages():
    text = "[a](../../CONTRIBUTING.md#rules) [b](vector.md) [c](../../profiling/measure.py) [d](https://e.org)\n```\n[e](../f)\n```\n"
    assert hooks.relinked(text, "docs/environments/memory.md", "environments/memory.md", "https://host") == (
        "[a](../contributing.md#rules) [b](vector.md) [c](https://host/blob/main/profiling/measure.py) [d](https://e.org)\n"
        "```\n[e](../f)\n```\n"
    )
    assert hooks.relinked("[a](docs/physics/README.md)", "CONTRIBUTING.md", "contributing.md", "") == (
        "[a](physics/README.md)"
    )
    assert hooks.relinked("[a](../../README.md)", "docs/physics/README.md", "physics/README.md", "h") == (
        "[a](h/blob/main/README.md)"
    )
    with pytest.raises(FileNotFoundError, match=r"CONTRIBUTING.md: expected .* got profiling/missing.py"):
        hooks.relinked("[a](profiling/missing.py)", "CONTRIBUTING.md", "contributing.md", "h")


def test_what_pages_load_from_elsewhere_is_found():
    page = (
        '<link rel="canonical" href="https://a.org"><a href="https://b.org">b</a><img src="c.png">'
        '<script src="https://d.org/e.js"></script><link href="//f.org/g.css" rel="stylesheet">'
    )
    assert hooks.loaded_from_elsewhere(page) == ["https://d.org/e.js", "//f.org/g.css"]


def test_a_notebook_is_a_page_with_its_outputs():
    page = hooks.notebook_page((DOCS / "tutorial" / "tutorial.ipynb").read_text())
    assert page.startswith("# ")
    assert page.count("```python\n") >= 6
    assert "```text\n" in page
    assert 'src="data:image/png;base64,' in page
    assert hooks.loaded_from_elsewhere(page) == []
