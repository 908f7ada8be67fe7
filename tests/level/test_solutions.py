"""The known solutions of the built-in levels, and the words they are written in."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nclone_env import simulate
from nclone_env.errors import ConfigError, LevelFormatError
from nclone_env.game import CELEBRATING
from nclone_env.level.build import build_room
from nclone_env.level.catalog import level_sets
from nclone_env.level.level import Level
from nclone_env.level.load import load_level
from nclone_env.level.solutions import SOLUTIONS_FILE, format_inputs, known_solutions, known_solutions_of, parse_inputs

LEVELS = [name for names in level_sets().values() for name in names]


@pytest.mark.parametrize("level", LEVELS)
def test_every_level_has_a_solution_that_wins_in_its_last_frame(level):
    state = simulate(level, known_solutions()[level]).state
    assert state[-1] == CELEBRATING
    assert not (state[:-1] >= CELEBRATING).any()


def test_no_solution_without_a_level():
    assert sorted(known_solutions()) == sorted(LEVELS)


@given(st.binary(max_size=200).map(lambda data: bytes(value % 6 for value in data)))
def test_words_stand_for_inputs(inputs):
    assert parse_inputs(format_inputs(inputs)) == inputs


def test_words_by_hand():
    assert parse_inputs("3RJ 1. 2L") == bytes([3, 3, 3, 0, 4, 4])
    assert format_inputs(bytes([3, 3, 3, 0, 4, 4])) == "3RJ 1. 2L"


def test_a_wrong_word_is_named():
    with pytest.raises(LevelFormatError, match=r"walk: word 2: expected a count and one of .*, got '0R'"):
        parse_inputs("3R 0R", "walk")


def test_a_folder_without_the_file_knows_nothing(tmp_path):
    assert known_solutions(tmp_path) == {}


def test_a_broken_file_is_named(tmp_path):
    (tmp_path / SOLUTIONS_FILE).write_text("walk =")
    with pytest.raises(LevelFormatError, match=SOLUTIONS_FILE):
        known_solutions(tmp_path)


@pytest.mark.parametrize("frames", [99_999, 100_000, 250_000])
def test_long_runs_are_written_so_that_they_can_be_read(frames):
    inputs = bytes([2]) * frames + bytes([1])
    assert parse_inputs(format_inputs(inputs)) == inputs


@pytest.mark.parametrize("code", [6, 7, 8, 255])
def test_inputs_without_a_word_are_refused(code):
    with pytest.raises(ConfigError, match=f"inputs: expected bytes 0 to 5, .*, got {code}"):
        format_inputs(bytes([2, code]))


def test_levels_are_known_by_their_tiles_and_entities():
    original, *_ = LEVELS
    level = load_level(original)
    copy = Level(level.raw, "another name")
    impostor = Level(load_level(LEVELS[1]).raw, original)
    other = build_room("exit 90 58", "exit_switch 80 58", title="unknown")
    assert known_solutions_of([copy, other]) == {"another name": known_solutions()[original]}
    assert known_solutions_of([impostor]) == {original: known_solutions()[LEVELS[1]]}
