"""Proofs: exhaustive search finds what counting all inputs finds, certificates hold, and false ones do not."""

import itertools
import json

import numpy as np
import pytest

from nclone_env.errors import ConfigError, FormatError, LevelFormatError
from nclone_env.level.build import build_level, hall_tiles
from nclone_env.level.level_set import pack
from nclone_env.level.load import load_level
from nclone_env.level.solutions import format_inputs, parse_inputs
from nclone_env.prove.bounds import hall_of
from nclone_env.prove.check import check_certificate
from nclone_env.prove.exhaustive import make_reach, make_seen, search, search_bytes, states_that_fit
from nclone_env.prove.proof import prove, read_certificate
from nclone_env.sim.session import Session
from nclone_env.sim.simulate import simulate
from nclone_env.sim.state import make_worlds

TILES, SHAFT = hall_tiles((3, 38), (12, 16)), hall_tiles((3, 30), (3, 20))


def run(switch, exit_, tiles=TILES, spawn=(20, 66), *more):
    return build_level(f"exit {exit_}", f"exit_switch {switch}", *more, tiles=tiles, spawn=spawn)


BY_BOUND = {
    "at once": run("21 60", "22 60", spawn=(20, 60)),
    "run 32": run("24 66", "28 66"),
    "run 49": run("28 66", "34 66"),
    "run 68": run("34 66", "44 66"),
    "fall 101": run("30 50", "30 70", SHAFT, (30, 20)),
    "fall 113": run("32 70", "34 80", SHAFT, (30, 20)),
    "fall past a drone": run("30 50", "30 76", SHAFT, (30, 20), "zap_drone 60 40 0 0"),
}
SLOPED = {(1, 1): 1}  # not a hall
BY_SEARCH = {
    "step": build_level("exit 23 62", "exit_switch 22 62", tiles=SLOPED, spawn=(20, 60)),
    "drop": build_level("exit 20 64", "exit_switch 21 60", tiles=SLOPED, spawn=(20, 60)),
    "drop beside a mine": build_level("exit 20 64", "exit_switch 20 61\nmine 22 62", tiles=SLOPED, spawn=(20, 60)),
    "drop on a pad": build_level(
        "exit 20 52", "exit_switch 20 61\nlaunch_pad 20 62 6", tiles=SLOPED, spawn=(20, 60)
    ),
}  # fmt: skip


@pytest.mark.parametrize("level", [*BY_BOUND.values(), *BY_SEARCH.values()], ids=[*BY_BOUND, *BY_SEARCH])
def test_proofs_hold(level):
    proof = prove(level, frames=300_000, memory=200_000_000)
    assert proof.complete
    assert proof.method == ("bound" if level in BY_BOUND.values() else "search")
    assert simulate(level, proof.inputs).state[-1] == 8
    certificate = read_certificate(proof.certificate())
    assert certificate.frames == proof.frames == len(certificate.inputs)
    check = check_certificate(certificate, level)
    assert check.holds, check.reason
    states = sum(count for count, _ in proof.layers)
    assert check.states >= states  # the check keeps more states apart


def first_win(level, most):
    """Return the frames of the fastest solution, by counting through all inputs."""
    for frames in range(1, most + 1):
        inputs = np.array(list(itertools.product(range(6), repeat=frames)), np.uint8)
        session = Session(level, len(inputs))
        session.play(inputs.T)
        if (session.worlds.ninjas["state"] == 8).any():
            return frames
    return None


def test_the_search_agrees_with_counting_through_all_inputs():
    level = BY_SEARCH["step"]
    frames = first_win(level, 7)
    assert frames is not None
    levels = pack([level])
    _, inputs, complete = search(levels, 7, 100_000, make_reach(levels, 7))
    assert complete
    assert len(inputs) == frames
    layers, none, complete = search(levels, frames, 100_000, make_reach(levels, frames))
    assert complete
    assert none is None
    assert layers[1][0] == 6


def slowly(level):
    """Return the inputs of a solution that only waits."""
    return np.zeros(int(np.argmax(simulate(level, bytes(20)).state == 8)) + 1, np.uint8)


def test_a_slow_solution_is_replaced_by_the_fastest():
    level = BY_SEARCH["step"]
    fast = prove(level, frames=100_000)
    slow = slowly(level)
    again = prove(level, slow)
    assert 1 < again.frames == fast.frames < len(slow)
    assert again.complete


def test_the_states_of_a_search_do_not_depend_on_chance():
    level = BY_SEARCH["drop"]
    one, two = (prove(level, frames=100_000) for _ in range(2))
    assert one.certificate() == two.certificate()
    other = prove(BY_SEARCH["step"], frames=100_000)
    assert one.layers != other.layers


def test_bounds_leave_out_states_but_no_solution():
    level = run("26 66", "28 64")
    levels = pack([level])
    frames = 14
    pruned, inputs, _ = search(levels, frames, 3_000_000, make_reach(levels, frames))
    plain = make_reach(pack([BY_SEARCH["step"]]), frames)  # of a level that is no hall: nothing is left out
    counted, without, _ = search(levels, 8, 3_000_000, plain)
    assert inputs is without is None
    assert sum(states for states, _ in pruned[:7]) <= sum(states for states, _ in counted[:7])


def test_a_search_that_does_not_fit_says_so():
    proof = prove(run("20 56", "22 56"), frames=300_000, memory=2_000_000)
    assert not proof.complete
    assert "fill the memory" in proof.reason
    with pytest.raises(ConfigError, match="memory: expected room for 10 states"):
        prove(run("20 56", "22 56"), frames=300_000, memory=100)


def test_a_level_without_a_solution_has_no_proof():
    proof = prove(run("150 20", "152 20"), frames=20_000)
    assert (proof.complete, proof.frames, proof.reason) == (False, 0, "no solution is known")


def changed(proof, **parts):
    return json.dumps(json.loads(proof.certificate()) | parts).encode()


def test_false_certificates_do_not_hold():
    level = BY_SEARCH["step"]
    proof = prove(level, frames=100_000)
    longer = changed(proof, frames=len(slowly(level)), inputs=format_inputs(slowly(level).tobytes()))
    texts = {
        "other inputs win in frame": longer,
        "its inputs do not win": changed(proof, inputs="3L"),
        "the lower bound is 2 frames": changed(proof, method="bound"),
    }
    for reason, data in texts.items():
        check = check_certificate(read_certificate(data), level)
        assert not check.holds
        assert reason in check.reason
    assert "of another level" in check_certificate(read_certificate(proof.certificate()), TILED).reason


TILED = load_level("first-steps/01-walk")


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (b"{", FormatError),
        (b"[]", FormatError),
        (b'{"format": 2}', FormatError),
        (b'{"format": 1}', FormatError),
    ],
)
def test_malformed_certificates_are_rejected(data, error):
    with pytest.raises(error, match="<bytes>"):
        read_certificate(data)


def test_malformed_parts_are_rejected():
    proof = prove(BY_SEARCH["step"], frames=100_000)
    for parts in ({"method": "faith"}, {"layers": [1]}, {"frames": "x"}, {"bound": {}}):
        with pytest.raises(FormatError):
            read_certificate(changed(proof, **parts))
    with pytest.raises(LevelFormatError):
        read_certificate(changed(proof, inputs="3X"))


FORGED = {  # inputs that do not win, or not at the end alone
    "no frame": [],
    "one frame": [0],
    "too many": [0] * 60,
}


@pytest.mark.parametrize("inputs", FORGED.values(), ids=FORGED)
def test_inputs_that_do_not_win_at_their_end_are_refused(inputs):
    with pytest.raises(ConfigError, match="inputs: expected those of a solution, which win in their last frame"):
        prove(BY_SEARCH["step"], np.array(inputs, np.uint8))
    assert prove(BY_SEARCH["step"], slowly(BY_SEARCH["step"])).complete


def test_left_with_right_is_left_in_a_certificate():
    level = BY_BOUND["run 32"]
    mirrored = build_level("exit 15 66", "exit_switch 17 66", tiles=TILES, spawn=(20, 66))
    won = np.flatnonzero(simulate(mirrored, bytes([4]) * 60).state == 8)[0] + 1
    proof = prove(mirrored, np.full(won, 6, np.uint8), memory=1_000_000)
    assert proof.inputs.tolist() == [4] * won
    assert format_inputs(proof.inputs.tobytes()) == f"{won}L"
    with pytest.raises(ConfigError, match="win in their last frame"):
        prove(level, np.full(won, 6, np.uint8))


def test_a_ninja_that_starts_outside_is_in_no_hall():
    for spawn in ((0, 0), (176, 100), (255, 255)):
        level = build_level("exit 24 66", "exit_switch 24 66", tiles=TILES, spawn=spawn)
        assert hall_of(pack([level])) is None
        assert not prove(level, frames=2_000).complete
    assert hall_of(pack([BY_BOUND["run 32"]])) is not None


@pytest.mark.parametrize("level", [BY_SEARCH["step"], BY_BOUND["run 32"]], ids=["any", "hall"])
@pytest.mark.parametrize("memory", [3_000_000, 50_000_000])
def test_a_search_takes_no_more_than_its_memory(level, memory, monkeypatch):
    levels, limit, taken = pack([level]), 20, 0
    states = states_that_fit(levels, limit, memory)

    def counted(shape, dtype=float):
        nonlocal taken
        array = zeros(shape, dtype)
        taken += array.nbytes
        return array

    zeros = np.zeros
    monkeypatch.setattr(np, "zeros", counted)
    make_seen(states)
    [make_worlds(states // 4 + 1, levels, limit) for _ in range(2)]
    counted((2, states // 4 + 1), np.int32)
    make_reach(levels, limit)
    assert search_bytes(levels, limit, states) <= memory < search_bytes(levels, limit, states + 1)
    assert 0.85 * memory < taken <= memory


def test_a_forged_certificate_cannot_fill_the_memory():
    """It waits for as long as it likes, so that a check would have to visit all states of as many frames."""
    level = BY_SEARCH["drop"]
    proof = prove(level, frames=100_000)
    waits = slowly(level)
    forged = read_certificate(changed(proof, frames=len(waits), inputs=format_inputs(waits.tobytes())))
    check = check_certificate(forged, level, memory=20_000)
    assert (check.holds, check.reason[:31]) == (False, "it needs more than 20,000 bytes")
    assert check_certificate(read_certificate(proof.certificate()), level).holds
    hall = BY_BOUND["run 32"]
    moves = "1R 2000. 1L 200. 24R 40R"
    assert "memory" in check_certificate(_claim(hall, moves), hall, memory=10_000_000).reason


def _claim(level, words):
    """Return a certificate that all shorter inputs than some that win at last were tried."""
    inputs = parse_inputs(words)
    won = int(np.argmax(simulate(level, inputs).state == 8)) + 1
    assert won > 1000
    text = {"format": 1, "level": "", "digest": level.raw.digest, "frames": won, "method": "search", "layers": []}
    bound = {"frames": 2, "rule": "any", "width": 0.0}
    return read_certificate(json.dumps(text | {"bound": bound, "inputs": format_inputs(inputs[:won])}).encode())
