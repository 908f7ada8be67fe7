"""Playing with the keyboard: events are posted as if by a person."""

import numpy as np
import pytest

from nclone_env.constants import DEAD
from nclone_env.render.window import Window
from nclone_env.replay.play import KEYS, input_byte, play, watch
from nclone_env.replay.recording import Recording
from nclone_env.replay.video import recording_pictures

from .bases import DEADLY, RIGHT

SCALE = 0.1
SIZE = (106, 60)


@pytest.fixture
def pygame(monkeypatch):
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    return pytest.importorskip("pygame")


class Person(Window):
    """A window in which things happen by themselves.

    Args:
        pygame: the module.
        deeds: what is done before each picture: ``+left`` presses a key, ``-left`` lets it go, ``quit`` closes.
    """

    def __init__(self, pygame, deeds: dict[int, str]):
        super().__init__(SIZE, frames_per_second=0)
        self._module, self.deeds, self.pictures = pygame, deeds, []
        pygame.event.clear()

    def show(self, picture):
        for deed in self.deeds.get(len(self.pictures), "").split():
            self._module.event.post(self._event(deed))
        self.pictures.append(picture.copy())
        assert len(self.pictures) < 2000, "nobody quits"
        return super().show(picture)

    def _event(self, deed):
        if deed == "quit":
            return self._module.event.Event(self._module.QUIT)
        kind = self._module.KEYDOWN if deed[0] == "+" else self._module.KEYUP
        return self._module.event.Event(kind, key=self._module.key.key_code(deed[1:]))


def played(pygame, deeds):
    """Return the person, and the recordings saved."""
    person, saved = Person(pygame, deeds), []
    play(DEADLY, saved.append, person, SCALE)
    assert not person.is_open
    return person, saved


def test_keys_make_inputs(pygame):
    deeds = {3: "+right", 10: "+space", 14: "-space", 20: "-right +a", 25: "-a", 30: "+s", 31: "quit"}
    _, (recording,) = played(pygame, deeds)
    wanted = [2] * 7 + [3] * 4 + [2] * 6 + [4] * 5 + [0] * 5
    assert recording.inputs.tolist() == wanted
    assert recording.prove().agrees
    assert recording.level.digest == DEADLY.raw.digest


@pytest.mark.parametrize(("key", "code"), KEYS.items())
def test_every_key(pygame, key, code):
    _, (recording,) = played(pygame, {0: f"+{key}", 1: f"-{key}", 2: "+s", 3: "+escape"})
    assert recording.inputs.tolist() == [code, 0]


def test_a_tap_within_one_frame_counts(pygame):
    _, (recording,) = played(pygame, {0: "+up -up", 1: "+s -s", 2: "quit"})
    assert recording.inputs.tolist() == [1]


def test_restart_begins_anew(pygame):
    person, (recording,) = played(pygame, {0: "+right", 20: "-right +r", 30: "+left", 33: "+s", 34: "quit"})
    assert recording.inputs.tolist() == [4] * 3
    assert (person.pictures[21] == person.pictures[0]).all()
    assert (person.pictures[20] != person.pictures[0]).any()


def test_nothing_is_recorded_after_death(pygame):
    _, (recording,) = played(pygame, {0: "+right", 300: "+s", 301: "quit"})
    assert recording.prove().state == DEAD
    assert len(recording.inputs) < 290


def test_saving_again_and_saving_nothing(pygame):
    _, saved = played(pygame, {0: "+s -s", 5: "+right", 10: "+s -s", 12: "+s", 15: "quit"})
    assert [len(recording.inputs) for recording in saved] == [5, 7]


def test_keys_together():
    assert input_byte(["left", "d", "w", "q", "left shift"]) == 7
    assert input_byte([]) == 0


def test_losing_the_focus_lets_all_keys_go(pygame):
    person = Person(pygame, {0: "+right"})
    person.show(np.zeros((60, 106, 3), np.uint8))
    assert person.held == {"right"}
    pygame.event.post(pygame.event.Event(pygame.WINDOWFOCUSLOST))
    person.show(np.zeros((60, 106, 3), np.uint8))
    assert person.held == person.pressed == set()
    person.close()


@pytest.mark.parametrize(("deeds", "shown"), [({}, 11), ({4: "quit"}, 4), ({4: "+escape"}, 4)])
def test_watching(pygame, deeds, shown):
    person = Person(pygame, deeds)
    assert watch(recording_pictures(Recording.of(DEADLY, [RIGHT] * 10), SCALE), person) == shown
    assert not person.is_open
