"""A solution ends with the win."""

from nclone_env.game import INPUT_OF_ACTION
from profiling.planning import find_solutions


def test_a_win_is_cut_at_its_last_frame():
    level = "first-steps/06-hop"
    solution = find_solutions.known_solutions()[level]
    actions = [INPUT_OF_ACTION.index(code) for code in solution]
    assert find_solutions.winning_inputs(level, [*actions, 0, 0, 0], 1) == solution
    assert find_solutions.winning_inputs(level, actions[:-1], 1) is None
