"""Programs of environments on a GPU compile to code that changes no bit, and the script of ``make gpu`` runs."""

import pytest

from nclone_env.env.cuda import PROGRAMS
from profiling.checks import cuda_code, cuda_run

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def no_assembler(monkeypatch):
    """Leave out NVIDIA's assembler, which takes as long and only tells registers."""
    monkeypatch.setattr(cuda_code, "assemble", lambda ptx, capability: "")


def test_every_program_is_compiled():
    assert {name for name, _ in cuda_code.programs().values()} == set(PROGRAMS)


@pytest.mark.parametrize("name", ["reset", "step_all", "masks_all", "outcomes_all"])
def test_a_program_holds_nothing_that_would_change_a_bit(name):
    """``step_all`` has in it what ``step`` and ``reset_all`` have; ``make cuda`` compiles these, too."""
    assert cuda_code.check(name, "8.0")


def test_the_control_is_found(capsys):
    assert not cuda_code.check("reset", "8.0", fuse=True)
    assert ", 0 unrounded" not in capsys.readouterr().out


def test_the_script_for_a_gpu_runs_on_the_stand_in(capsys):
    assert cuda_run.main(seconds=3600, stand_in=True) == 0
    printed = capsys.readouterr().out
    assert printed.count(" 0 of ") == 5
    assert "training: the same seed, the same policy; 4 x 4: " in printed
    assert "waits: 1 an update, 0 noticed by PyTorch; 2 copies to the host, 3 to the device" in printed
    assert "example: seed 0: 64 steps in" in printed
    assert "failed: nothing" in printed
