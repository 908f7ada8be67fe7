"""The program as a whole: version, unknown commands, numbers."""

import pytest

from nclone_env import __version__
from nclone_env.cli.app import main
from nclone_env.cli.numbers import read_whole_number


def test_version(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"nclone-env {__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["trian"], "got 'trian'; did you mean 'train'?"),
        (["levels", "shw", "jumps"], "expected one of list, show, validate, convert, cache, generate, got 'shw'"),
        (["zzz"], "got 'zzz'\n"),
    ],
)
def test_unknown_commands(arguments, said, capsys):
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert error.startswith("nclone-env: command: expected one of ")
    assert said in error


def test_help_describes_every_command(capsys):
    with pytest.raises(SystemExit):
        main(["--help"])
    shown = capsys.readouterr().out
    assert "Verify, record and play recordings" in shown
    assert "List, show, validate, convert and generate levels." in shown


@pytest.mark.parametrize(("word", "value"), [("12", 12), ("1e6", 1_000_000), ("2_000_000", 2_000_000), ("-5", -5)])
def test_whole_numbers(word, value):
    assert read_whole_number(word) == value


@pytest.mark.parametrize("word", ["1.5", "abc", "1e99", "nan", "inf", "", "9" * 5000])
def test_words_that_are_no_whole_numbers(word):
    with pytest.raises(ValueError, match="expected a whole number, such as 1000000 or 1e6, got ") as raised:
        read_whole_number(word)
    assert len(str(raised.value)) < 150


def test_numbers_in_a_command(capsys):
    assert main(["train", "--total-timesteps", "1e6", "--levels", "nosuch"]) == 2
    assert "got 'nosuch'" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["train", "--total-timesteps", "1.5"])
    assert "expected a whole number" in capsys.readouterr().err
