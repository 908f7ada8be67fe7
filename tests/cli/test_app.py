"""The program as a whole: version, unknown commands, numbers."""

import inspect
import re
import warnings

import pytest

from nclone_env import __version__
from nclone_env.cli import app
from nclone_env.cli.app import COMMANDS, SUMMARIES, load, main
from nclone_env.cli.arguments import read_whole_number
from nclone_env.cli.train import train


def test_version(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"nclone-env {__version__}\n"


def test_help_describes_every_command_in_one_line(capsys):
    with pytest.raises(SystemExit):
        main(["--help"])
    shown = " ".join(re.sub("[│•]", " ", capsys.readouterr().out).split())
    assert SUMMARIES.keys() == COMMANDS.keys()
    for name, summary in SUMMARIES.items():
        assert f" {name} {summary}" in shown
    assert "The run folder contains" not in shown  # further lines are for `train --help`


def disagreeing(summaries, functions):
    """Return the commands whose summary is not the beginning of the docstring of their function."""
    firsts = {
        name: inspect.getdoc(function).partition("\n")[0].replace("`", "") for name, function in functions.items()
    }
    return [name for name, first in firsts.items() if not re.match(rf"{re.escape(summaries[name][:-1])}\b", first)]


def test_summaries_are_the_beginnings_of_docstrings():
    functions = {name: load(place) for name, place in COMMANDS.items() if isinstance(place, str)}
    functions["train"] = train  # which the one in the table returns
    assert disagreeing(SUMMARIES, functions) == []
    changed = SUMMARIES | {"solve": "Search for inputs.", "play": "Play levels with the key."}
    assert disagreeing(changed, functions) == ["play", "solve"]


def test_patterns_are_replaced_where_files_match(tmp_path, monkeypatch):
    """Shells of Windows pass them on."""
    monkeypatch.chdir(tmp_path)
    for name in ("b.replay", "a.replay", "what?"):
        (tmp_path / name).touch()
    words = ["gallery", "*.replay", "what?", "none*", "--output", "*.replay", "pack.txt#*"]
    assert app._matched(words) == ["gallery", "a.replay", "b.replay", *words[2:]]


def test_a_file_with_a_name_that_is_too_long(capsys):
    assert main(["levels", "convert", "first-steps/01-walk", f"{'x' * 5000}.toml"]) == 1  # cannot be written
    assert re.fullmatch(r"nclone-env: .{300}\.\.\.: File name too long\n", capsys.readouterr().err)


NUMBERS = ("12", 12), ("1e6", 10**6), ("2_000_000", 2 * 10**6), ("-5", -5), ("5M", 5 * 10**6), ("2.3k", 2300)


@pytest.mark.parametrize(("word", "value"), NUMBERS)
def test_whole_numbers(word, value):
    assert read_whole_number(word) == value


@pytest.mark.parametrize("word", ["1.5", "abc", "1e99", "nan", "inf", "", "9" * 5000, "k", "1e999999M", "1.2345k"])
def test_words_that_are_no_whole_numbers(word):
    with pytest.raises(ValueError, match="expected a whole number, such as 1000000, 1e6 or 1M, got ") as raised:
        read_whole_number(word)
    assert len(str(raised.value)) < 150


def test_a_warning_is_printed_once(capsys, monkeypatch):
    def command(args):
        for text in ("one\x1b", "one\x1b", "two", "one\x1b"):
            with warnings.catch_warnings(action="always"):  # Python's filter then forgets what it has shown
                warnings.warn(text, RuntimeWarning, stacklevel=1)
        return 0

    monkeypatch.setattr(app, "_run_command", command)
    for _ in range(2):  # by each call of the program
        before = warnings.showwarning
        assert main([]) == 0
        assert warnings.showwarning is before
        lines = ("one\\x1b", "two")
        assert capsys.readouterr().err == "".join(f"nclone-env: RuntimeWarning: {line}\n" for line in lines)
