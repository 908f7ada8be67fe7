"""The scripts that train or ask about it run on small inputs."""

import pytest

from nclone_env.level.formats.pack_text import write_pack
from nclone_env.level.load import load_level
from nclone_env.train.policies.mlp import MLP
from profiling.training import device, foresight, ranks, recipes

from ..output import lines


@pytest.mark.slow
def test_training_on_a_device(capsys):
    """One wait; parameters and episodes come back, number of step and update and the rates go there."""
    device.main(("first-steps/06-hop",), updates=2, num_envs=16, num_steps=8)
    policy, speed, counts = lines(capsys)
    assert policy.endswith("on the processor, with a stand-in; 16 environments x 8 steps")
    assert "median of 2 updates: " in speed
    assert counts.strip() == "1 wait, 2 copies to the host, 3 to the device"


def test_the_messages_of_an_update(monkeypatch):
    """32 gradients, the moments of 4 epochs and one row of statistics; an exchange is two gathers."""
    monkeypatch.setattr(MLP, "pass_arrays", lambda network, seat: None)  # as with others, who see each gradient
    monkeypatch.setattr(ranks, "WARM_UPDATES", 0)
    load, seconds = ranks.measure(("first-steps/06-hop",), 8, 1)
    assert (load.reduces, load.gathers) == (37, 2)  # a single process keeps its episodes to itself
    assert load.reduced == 32 * 4 * 6599 + 4 * 192 + 48
    assert load.seconds > seconds > 0


def test_the_ring_of_ranks():
    load = ranks.Load(1.0, reduces=3, reduced=1000, gathers=2, gathered=10)
    assert ranks.communication(load, 1, 1e-3, 1e6) == (0, 0.0, 0.0)
    steps, sent, seconds = ranks.communication(load, 5, 1e-3, 1e6)
    assert (steps, sent) == (3 * 8 + 2 * 4, 1000 * 8 / 5 + 10 * 4)
    assert seconds == pytest.approx(32e-3 + sent / 1e6)


def test_parts_leave_unreadable_levels_out(tmp_path):
    pack = tmp_path / "pack.txt"
    pack.write_bytes(write_pack([load_level("first-steps/06-hop").raw] * 2) + b"$damaged#00#\n")
    with pytest.warns(RuntimeWarning, match="left out: .*pack.txt: line 3"):
        assert sorted(recipes.part((str(pack),), 0)) == [f"{pack}#0", f"{pack}#1"]


def test_recipes_on_parts_of_the_levels(capsys):
    two, five = (recipes.part(("first-steps", "jumps"), size) for size in (2, 5))
    assert five[:2] == two
    recipes.main(("first-steps",), ("first-steps/06-hop",), runs=("defaults=16384",), seeds=1, sizes=(1, 0), attempts=2)
    header, random, one, six = lines(capsys)
    assert header.split()[:5] == ["recipe", "levels", "seed", "steps", "processor"]
    assert random.split()[0] == "random"
    assert one.split()[:4] == ["defaults", "1", "0", "16,384"]
    assert six.split()[:4] == ["defaults", "6", "0", "16,384"]
    assert one.count("%") == random.count("%") + 2


def test_foresight_on_built_in_levels(capsys):
    foresight.main(("hazards",), frames=30, steps=40)
    _, deaths, foretold, coming, *errors = capsys.readouterr().out.splitlines()
    assert deaths.endswith(" motions end in a death")
    assert all(float(line.split("%")[0]) > 80 for line in (foretold, coming))
    assert all(float(line.split()[-1].rstrip("%")) < 5 for line in errors)
