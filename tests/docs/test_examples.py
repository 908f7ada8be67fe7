"""Every Python block of the documentation runs alone, as it stands; commands in it are accepted by the program."""

import ast
import functools
import re
import runpy
import shlex
import shutil
import subprocess
from pathlib import Path

import gymnasium
import pytest
import tyro

from nclone_env.cli import app
from nclone_env.cli.train import train

from .pages import PAGES, ROOT

ELSEWHERE = {"distributed", "onnxruntime", "optuna", "ray", "stable_baselines3", "torchrl"}
"""Libraries that are not installed here; ``make compat`` runs the blocks that import them."""
LONG = {
    ("docs/levels/generated.md", 0),
    ("docs/levels/planning.md", 0),
    ("docs/levels/planning.md", 2),
    ("docs/operation/profiling.md", 0),
    ("docs/operation/testing.md", 0),
    ("docs/environments/snapshots.md", 2),
    ("docs/environments/snapshots.md", 3),
    ("docs/training/trajectories.md", 1),
    ("docs/training/use.md", 0),
    ("docs/training/use.md", 1),
    ("docs/training/use.md", 2),
    ("docs/tutorial/reward.md", 1),
    ("docs/tutorial/reward.md", 3),
    ("docs/tutorial/train.md", 0),
    ("docs/tutorial/watch.md", 0),
    ("docs/tutorial/watch.md", 1),
}
"""Blocks that take more than two seconds: they train, search or compile kernels of their own."""


def blocks(page: Path, *languages: str) -> list[str]:
    """Return the fenced code blocks of a page in some languages."""
    return re.findall(rf"^```(?:{'|'.join(languages)})\n(.*?)^```$", page.read_text(), flags=re.DOTALL | re.MULTILINE)


def imported(block: str) -> set[str]:
    """Return the top-level names of all modules that a block imports."""
    nodes = list(ast.walk(ast.parse(block)))
    named = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    named += [node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)]
    return {name.partition(".")[0] for name in named}


def printed(block: str, page: Path) -> str | None:
    """Return what a page says that a block prints: the text block right below it, None without one."""
    found = re.search(
        rf"^```python\n{re.escape(block)}```\n\n```text\n(.*?)^```$", page.read_text(), flags=re.DOTALL | re.M
    )
    return found and found[1]


EXAMPLES = [
    pytest.param(
        block,
        page,
        id=f"{page.relative_to(ROOT)}-{index}",
        marks=[pytest.mark.slow] if (page.relative_to(ROOT).as_posix(), index) in LONG else [],
    )
    for page in PAGES
    for index, block in enumerate(blocks(page, "python"))
    if not imported(block) & ELSEWHERE and 'device="cuda"' not in block  # which needs a GPU
]


@pytest.fixture
def alone(monkeypatch, tmp_path):
    """Run a block as a script in an empty folder, with nothing registered that it does not import."""
    monkeypatch.chdir(tmp_path)

    def run(block: str) -> None:
        script = tmp_path / "example.py"  # kernels are compiled from files
        script.write_text(block)
        with monkeypatch.context() as context:
            if "nclone_env" not in imported(block) and "nclone_env:" not in block:
                for name in [name for name in gymnasium.registry if name.startswith("nclone/")]:
                    context.delitem(gymnasium.registry, name)
            runpy.run_path(str(script))

    return run


@pytest.mark.parametrize(("block", "page"), EXAMPLES)
def test_the_block_runs_alone(block, page, alone, capsys, tmp_path):
    for level in page.parent.glob("*.toml"):  # which the page shows
        shutil.copy(level, tmp_path)
    alone(block)
    expected = printed(block, page)
    assert expected in (None, capsys.readouterr().out)


def test_levels_beside_a_page_are_shown_on_one():
    for level in (ROOT / "docs").rglob("*.toml"):
        assert level.read_text() in [text for page in level.parent.glob("*.md") for text in blocks(page, "toml")]


def test_what_blocks_print_is_found():
    readme, features = ROOT / "README.md", ROOT / "docs" / "features.md"
    assert printed(blocks(readme, "python")[0], readme).startswith("first-steps/")
    assert printed(blocks(features, "python")[0], features) is None


def test_long_blocks_exist():
    assert {name for name in LONG if len(blocks(ROOT / name[0], "python")) <= name[1]} == set()


@pytest.mark.parametrize(
    ("block", "error"),
    [
        ("print(env)", NameError),
        ('import gymnasium\ngymnasium.make("nclone/NPlusPlus-v0")', gymnasium.error.NamespaceNotFound),
    ],
)
def test_blocks_that_need_another_one_are_found(block, error, alone):
    with pytest.raises(error):
        alone(block)


def test_blocks_of_other_libraries_are_run_by_their_tests():
    for page in PAGES:
        for block in blocks(page, "python"):
            for library in imported(block) & ELSEWHERE:
                names = {"distributed": "executors", "ray": "rllib", "stable_baselines3": "sb3", "onnxruntime": "onnx"}
                test = (ROOT / "tests" / "compat" / f"test_{names.get(library, library)}.py").read_text()
                assert "run_example(" in test or page.name in test


def commands(text: str) -> list[str]:
    """Return the commands of the program in a block for a shell: continued lines joined, without redirections."""
    lines = text.replace("\\\n", " ").splitlines()
    return [re.sub(r" > \S+", "", line.lstrip("$ ")) for line in lines if re.match(r"(?:\$ )?nclone-env( |$)", line)]


COMMANDS = [
    pytest.param(command, id=f"{page.relative_to(ROOT)}: {command}"[:100])
    for page in PAGES
    for block in blocks(page, "sh", "bash", "console")
    for command in commands(block)
]


@pytest.fixture
def parse_only(monkeypatch):
    """Return the program with commands that do nothing; their names, options and types stay."""
    register = tyro.extras.SubcommandApp.command

    def command(self, function=None, **options):
        if function is None:
            return functools.partial(command, self, **options)
        if isinstance(function, tyro.extras.SubcommandApp):
            return register(self, function, **options)
        return register(self, functools.wraps(function)(lambda *args, **kwargs: 0), **options)

    monkeypatch.setattr(tyro.extras.SubcommandApp, "command", command)
    monkeypatch.setattr("nclone_env.cli.train.train_command", lambda args: train)  # with --resume it would read the run
    return app.main


@pytest.mark.parametrize("command", COMMANDS)
def test_the_command_is_accepted(command, parse_only):
    try:
        status = parse_only(shlex.split(command, comments=True)[1:])
    except SystemExit as end:  # of --help, and of a refused command
        status = end.code or 0
    assert status == 0


@pytest.mark.parametrize(
    "arguments", [["train", "--total-step", "1000"], ["levels", "show"], ["profile", "script", "a.py", "--mine"]]
)
def test_wrong_commands_are_found(arguments, parse_only):
    assert parse_only(arguments) == 2


def test_commands_are_found():
    text = "make train\n$ nclone-env a \\\n  b\nnclone-env c > e  # d\nnclone-environment\n"
    assert commands(text) == ["nclone-env a    b", "nclone-env c  # d"]
    assert len(COMMANDS) > 30


@pytest.mark.parametrize(("shell", "beginning"), [("bash", "# AUTOMATICALLY"), ("zsh", "#compdef nclone-env")])
def test_completion(shell, beginning, capsys, tmp_path):
    with pytest.raises(SystemExit) as end:
        app.main(["--tyro-print-completion", shell])
    script = capsys.readouterr().out
    assert end.value.code in (None, 0)
    assert script.startswith(beginning)
    assert all(name in script for name in ("submit", "total-timesteps", "validate"))
    if shell == "bash" and shutil.which("bash"):
        (tmp_path / "completion").write_text(script)
        told = subprocess.run(
            ["bash", "-c", f"source {tmp_path}/completion && complete -p nclone-env"], capture_output=True, text=True
        )
        assert told.stdout.endswith("nclone-env\n"), told.stderr
