"""The process in the background answers, and ends with its parent."""

import os
import signal
import time

import pytest

from nclone_env._processes import Background, BackgroundError
from nclone_env.config import EnvironmentConfig
from nclone_env.errors import ConfigError


def test_an_unexpected_error_ends_the_process_with_its_traceback(capfd):
    background = Background()
    background.submit(int, "x")
    with pytest.raises(BackgroundError, match="it ended with status 1; if it printed no traceback"):
        background.result()
    background.close()
    assert "ValueError: invalid literal for int()" in capfd.readouterr().err


def test_the_process_in_the_background_answers_and_ends():
    background = Background()
    background.submit(EnvironmentConfig, "jumps")
    background.submit(EnvironmentConfig, ())
    assert background.result() == EnvironmentConfig(levels="jumps")
    with pytest.raises(ConfigError, match="levels: expected at least one level"):
        background.result()
    process = background._process
    assert os.getpriority(os.PRIO_PROCESS, process.pid) == min(19, os.getpriority(os.PRIO_PROCESS, 0) + 10)
    process.send_signal(signal.SIGTERM)  # left to the parent
    assert not background.ready(0.01)
    background.submit(len, "four")
    assert background.ready(60)
    assert background.result() == 4
    background.submit(time.sleep, 60)
    process.stdin.close()  # as when the parent is killed
    assert process.wait(30) == 0
    assert background.ready(60), "there is something to find out"
    with pytest.raises(BackgroundError, match="it ended with status 0"):
        background.result()
    background.close()
