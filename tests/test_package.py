"""What an index shows of the package, and what its distributions contain: the wheel runs from an empty folder."""

import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from email.message import Message
from email.parser import Parser
from pathlib import Path

import pytest

import nclone_env
from nclone_env.jit.dispatcher import TESTED_VERSIONS

pytest.importorskip("build")
pytest.importorskip("hatch_fancy_pypi_readme")

ROOT = Path(__file__).parents[1]
REPOSITORY = "https://github.com/nclone-env/nclone-env"
DATA = {
    name: sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "nclone_env" / name).iterdir())
    for name in ("policies", "recipes")
}
LEVELS = sorted(path.relative_to(ROOT / "levels").as_posix() for path in (ROOT / "levels").rglob("*.toml"))
EXAMPLE = """
import gymnasium
import nclone_env
from pathlib import Path
assert Path(nclone_env.__file__).is_relative_to({folder!r}), nclone_env.__file__
env = gymnasium.make("nclone/NPlusPlus-v0", levels="first-steps")
observation, info = env.reset(seed=1)
for _ in range(10):
    observation, reward, terminated, truncated, info = env.step(env.action_space.sample())
print(len(env.unwrapped.level_names), info["level"], observation["global_view"].shape)
"""


def relative_targets(text: str) -> list[str]:
    """Return the targets of links and pictures of Markdown that need the repository around the page."""
    return [target for target in re.findall(r"\]\(([^)\s]+)\)", text) if not re.match(r"[a-z]+://", target)]


def run(*command, **options) -> str:
    done = subprocess.run(command, capture_output=True, text=True, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Path:
    """The folder of both distributions; the wheel is built from the source distribution."""
    folder = tmp_path_factory.mktemp("built")
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT))
    return folder


@pytest.fixture(scope="module")
def wheel(built) -> Path:
    (path,) = built.glob("*.whl")
    assert path.name.endswith("-py3-none-any.whl")
    return path


@pytest.fixture(scope="module")
def metadata(wheel) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith("/METADATA"))
        return Parser().parsestr(archive.read(name).decode())


def test_version_is_the_packages(metadata):
    assert metadata["Version"] == nclone_env.__version__
    citation = (ROOT / "CITATION.cff").read_text()
    assert f"version: {nclone_env.__version__}\n" in citation
    assert f"repository-code: {REPOSITORY}\n" in citation


def test_addresses(metadata):
    addresses = dict(line.split(", ", 1) for line in metadata.get_all("Project-URL"))
    assert {"Homepage", "Documentation", "Source", "Changelog", "Issues"} == set(addresses)
    assert all(address.startswith(REPOSITORY) for address in addresses.values())
    for address in addresses.values():
        page = address.partition("/blob/main/")[2]
        assert (ROOT / page).exists(), address


def test_classifiers(metadata):
    classifiers = metadata.get_all("Classifier")
    workflow = (ROOT / ".github" / "workflows" / "checks.yml").read_text()
    tested, *_ = re.findall(r"python: \[(.*)\]", workflow)  # of Linux
    versions = [version.strip('"') for version in tested.split(", ")]
    named = [each.rpartition(" :: ")[2] for each in classifiers if re.search(r":: 3\.\d+$", each)]
    assert named == versions[: len(named)]  # the newest may be tried before it is named
    assert metadata["Requires-Python"] == f">={versions[0]}"
    assert "Typing :: Typed" in classifiers


def test_links_of_the_description_lead_to_the_repository(metadata):
    description = metadata.get_payload()
    assert metadata["Description-Content-Type"] == "text/markdown"
    assert relative_targets(description) == []
    pictures = re.findall(rf"!\[[^]]*\]\({REPOSITORY}/raw/main/([^)]+)\)", description)
    pages = re.findall(rf"\]\({REPOSITORY}/blob/main/([^)#]+)(?:#[^)]*)?\)", description)
    assert pictures
    assert len(pages) > 10
    assert [path for path in (*pictures, *pages) if not (ROOT / path).exists()] == []


def test_relative_targets_are_found():
    assert relative_targets("[a](docs/a.md) ![b](b.png) [c](https://c.org) [d](#d)") == ["docs/a.md", "b.png", "#d"]


def test_the_source_distribution_contains_what_the_repository_does(built):
    (path,) = built.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        members = [member for member in archive.getmembers() if member.isfile()]
    names = {member.name.partition("/")[2] for member in members}
    assert {"docs/README.md", "Makefile", "constraints.txt", "CONTRIBUTING.md", "CHANGELOG.md", "mkdocs.yml"} <= names
    listed = ("git", "-C", str(ROOT), "ls-files", "--cached", "--others", "--exclude-standard")
    tracked = subprocess.run(listed, capture_output=True, text=True)
    if tracked.returncode == 0:  # in a repository
        kept = {name for name in tracked.stdout.splitlines() if (ROOT / name).is_file()}
        assert names - {"PKG-INFO"} == kept


def test_the_wheel_contains_the_package_its_levels_and_nothing_else(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    assert LEVELS
    assert {f"nclone_env/_levels/{name}" for name in LEVELS} <= names
    for files in DATA.values():
        assert files
        assert set(files) <= names
    assert {"nclone_env/py.typed", "nclone_env/memory/show.html.jinja"} <= names
    tops = {name.split("/")[0] for name in names}
    assert len(tops) == 3
    assert {top.split("-")[0] for top in tops} == {"nclone_env", "nclone_env_pytest.py"}
    modules = {path.relative_to(ROOT).as_posix() for path in (ROOT / "nclone_env").rglob("*.py")}
    assert modules | {"nclone_env_pytest.py"} == {name for name in names if name.endswith(".py")}


@pytest.mark.slow
def test_the_installed_wheel_runs_from_any_folder(wheel, tmp_path):
    folder, elsewhere = tmp_path / "site", tmp_path / "elsewhere"
    elsewhere.mkdir()
    pip = (sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--no-compile")
    run(*pip, "--target", str(folder), str(wheel))
    environment = {**os.environ, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    told = run(sys.executable, "-c", EXAMPLE.format(folder=str(folder)), cwd=elsewhere, env=environment)
    assert told.split()[0] == str(sum(name.startswith("first-steps/") for name in LEVELS))
    assert told.split()[1].startswith("first-steps/")
    markers = run(sys.executable, "-m", "pytest", "--markers", cwd=elsewhere, env=environment)
    assert "@pytest.mark.flat_memory(steps=100" in markers


def test_extras_are_constrained():
    """Every requirement that ``make`` installs has a tested version, so that two set-ups are equal."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pinned = {name(line) for line in lines if line and not line.startswith("#")}
    extras = project["optional-dependencies"]
    lists = [
        project["dependencies"],
        *(extras[extra] for extra in ("train", "human", "video", "profile", "dev", "docs")),
    ]
    assert {name(each) for requirements in lists for each in requirements} - pinned == set()
    # The weekly run takes the oldest versions that are allowed; kernels trust its Numba and the newest one.
    workflow = (ROOT / ".github" / "workflows" / "versions.yml").read_text()
    (oldest,) = re.findall(r'versions: oldest.*install: "(.*)"', workflow)
    assert {each.replace("==", ">=") for each in oldest.split()} <= set(project["dependencies"])
    trusted = {f"numba=={version}" for version in TESTED_VERSIONS}
    assert trusted == {each for each in (*oldest.split(), *lines) if each.startswith("numba==")}


def name(requirement: str) -> str:
    """Return the normalised name of a requirement."""
    return re.sub(r"[-_.]+", "-", re.match(r"[\w.-]+", requirement)[0]).lower()
