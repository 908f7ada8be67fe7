"""The hashes of the matrix are those of the first release, for each way to run environments; controls differ."""

import pytest

from nclone_env.jit.target import X86_BASELINES, target
from profiling.checks.determinism import CONTROLS, WAYS, Way, elsewhere, hashes, short_steps
from profiling.measure import compiled_for

GOLDEN = {
    "NextStep": ("7c09f36821a3e94c", "7497e42441eb79c8"),
    "SameStep": ("324a119c4877f838", "ee2905a374a71daa"),
    "Disabled": ("c7a249bee6dbdacb", "202c96671032d857"),
}


@pytest.mark.parametrize("mode", GOLDEN)
def test_golden_hashes(mode):
    assert hashes(Way(threads=2), mode) == GOLDEN[mode]


def test_another_action_changes_both_hashes():
    found = hashes(CONTROLS["one other action"], "SameStep")
    assert all(one != other for one, other in zip(found, GOLDEN["SameStep"]))


def test_short_steps_with_some_threads():
    one = short_steps(1, 1000)
    assert one == short_steps(2, 1000) == short_steps(7, 1000)
    assert one != short_steps(1, 999)


@pytest.mark.slow
@pytest.mark.parametrize("mode", GOLDEN)
@pytest.mark.parametrize("way", WAYS)
def test_every_way_in_every_mode(way, mode):
    assert hashes(WAYS[way], mode) == GOLDEN[mode]


@pytest.mark.slow
@pytest.mark.parametrize("processor", ["host", *X86_BASELINES])
def test_every_baseline(processor):
    if processor != "host" and target().processor not in X86_BASELINES:
        pytest.skip("not an x86-64 processor")
    assert elsewhere("NextStep", **compiled_for(processor)) == GOLDEN["NextStep"]
