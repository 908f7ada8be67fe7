from pathlib import Path

import numpy as np
import pytest

from nclone_env import errors
from nclone_env.render import window as module
from nclone_env.render.window import Window

from ..processes import run_copy

PICTURE = np.zeros((60, 100, 3), dtype=np.uint8)


def make_window():
    return Window((100, 60), frames_per_second=0)


def test_a_window_shows_the_picture_and_starts_no_sound(pygame):
    window = make_window()
    picture = PICTURE.copy()
    picture[10, 20] = (1, 2, 3)
    assert window.show(picture)
    assert pygame.display.get_surface().get_at((20, 10))[:3] == (1, 2, 3)
    assert pygame.mixer.get_init() is None
    window.close()
    window.close()
    assert not pygame.display.get_init()


def test_the_quit_event_closes_the_window(pygame):
    window = make_window()
    pygame.event.post(pygame.event.Event(pygame.QUIT))
    assert not window.show(PICTURE)
    assert not window.is_open
    with pytest.raises(errors.ClosedError, match="window: it was closed; make a new Window"):
        window.show(PICTURE)


def test_a_picture_of_another_size_is_refused(pygame):
    window = make_window()
    with pytest.raises(errors.BufferError, match=r"picture: expected shape \(60, 100, 3\) uint8, got \(100, 60, 3\)"):
        window.show(PICTURE.transpose(1, 0, 2))
    with pytest.raises(errors.BufferError, match="float64"):
        window.show(PICTURE.astype(float))
    window.close()


class Time:
    """Time that passes only when a window sleeps or a test says so."""

    def __init__(self):
        self.now, self.slept = 100.0, []

    def perf_counter(self):
        return self.now

    def sleep(self, seconds):
        self.slept.append(seconds)
        self.now += seconds


def test_the_window_keeps_its_rate_and_measures_it(pygame, monkeypatch):
    clock = Time()
    monkeypatch.setattr(module, "time", clock)
    window = Window((100, 60), frames_per_second=60)
    for _ in range(100):
        clock.now += 0.004  # of work
        window.show(PICTURE)
    assert clock.now - 100.0 == pytest.approx(99 / 60 + 0.004)
    assert window.rate == pytest.approx(60.0)
    for _ in range(100):
        clock.now += 0.025
        window.show(PICTURE)
    assert window.rate == pytest.approx(40.0)
    assert clock.slept[-1] == 0.0
    clock.now += 0.004
    window.show(PICTURE)
    assert clock.slept[-1] == pytest.approx(1 / 60 - 0.004), "late pictures are not made up for"
    window.close()


def test_a_key_can_close_the_window(pygame):
    closing = Window((100, 60), frames_per_second=0, closing_key="escape")
    pygame.event.post(pygame.event.Event(pygame.KEYDOWN, key=pygame.K_ESCAPE))
    assert not closing.show(PICTURE)
    assert not closing.is_open
    other = make_window()
    pygame.event.post(pygame.event.Event(pygame.KEYDOWN, key=pygame.K_ESCAPE))
    assert other.show(PICTURE)
    other.close()


def test_without_a_screen_no_invisible_window_is_opened(pygame, monkeypatch, caplog):
    make_window().close()
    monkeypatch.delenv("SDL_VIDEODRIVER")
    monkeypatch.setattr(pygame.display, "get_driver", lambda: "offscreen")
    monkeypatch.setattr(pygame.display, "init", lambda: None)
    with pytest.raises(errors.DisplayError, match="window: expected a screen, got none; set DISPLAY"):
        make_window()
    assert not caplog.messages
    Window((100, 60), must_be_seen=False).close()
    assert caplog.messages == [
        "window: there is no screen, so that it is invisible; set DISPLAY or WAYLAND_DISPLAY, or write pictures or a "
        "video instead"
    ]
    monkeypatch.setattr(pygame.display, "get_driver", lambda: "x11")
    Window.check()

    def fail():
        raise pygame.error("no display")

    monkeypatch.setattr(pygame.display, "init", fail)
    with pytest.raises(errors.DisplayError, match=r"got none \(no display\)"):
        Window.check()


PROGRAM = """
import ctypes.util
import numpy as np
from nclone_env.render.window import Window

def opengl():
    return any("libEGL" in line or "libGL" in line for line in open("/proc/self/maps"))

Window((100, 60)).show(np.zeros((60, 100, 3), np.uint8))
print(opengl())
library = ctypes.util.find_library("EGL")
loaded = library and ctypes.CDLL(library)
print(opengl() == bool(loaded))
"""


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="needs /proc")
def test_windows_load_no_opengl(pygame, monkeypatch, folder):
    """Where it is Mesa's, triton would end the process. Negative control: OpenGL is noticed, if there is one."""
    monkeypatch.delenv("SDL_FRAMEBUFFER_ACCELERATION", raising=False)
    Path("program.py").write_text(PROGRAM)
    assert run_copy(folder / "program.py", SDL_VIDEODRIVER="offscreen")[0].split() == ["False", "True"]
