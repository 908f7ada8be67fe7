"""What an index shows of the package, and what the source distribution contains."""

from __future__ import annotations

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

pytest.importorskip("build")
pytest.importorskip("hatch_fancy_pypi_readme")

ROOT = Path(__file__).parents[1]
REPOSITORY = "https://github.com/nclone-env/nclone-env"


def relative_targets(text: str) -> list[str]:
    """Return the targets of links and pictures of Markdown that need the repository around the page."""
    return [target for target in re.findall(r"\]\(([^)\s]+)\)", text) if not re.match(r"[a-z]+://", target)]


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("built")
    command = (sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT))
    done = subprocess.run(command, capture_output=True, text=True)  # the wheel is built from the source distribution
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture(scope="module")
def metadata(built) -> Message:
    (wheel,) = built.glob("*.whl")
    assert wheel.name.endswith("-py3-none-any.whl")
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


def name(requirement: str) -> str:
    """Return the normalised name of a requirement."""
    return re.sub(r"[-_.]+", "-", re.match(r"[\w.-]+", requirement)[0]).lower()
