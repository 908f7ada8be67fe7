"""The pages of a gallery in a headless Chromium: the list, the player, keyboard, phone width, reduced motion."""

import cv2
import numpy as np
import pytest

from nclone_env.gallery.tracks import Tracks
from nclone_env.level.build import everything
from nclone_env.level.level_set import pack
from nclone_env.level.load import load_level
from nclone_env.level.solutions import known_solutions
from nclone_env.render.picture import used_area_of, world_picture, zoom_of
from nclone_env.replay.recording import load_recording
from nclone_env.sim.session import Session

from ..gallery.browser import PROGRAM, Browser
from ..gallery.sites import DEADLY, RIGHT, WINNABLE, gallery, level_file, recording_file

pytestmark = pytest.mark.skipif(PROGRAM is None, reason="there is no chromium, chromium-browser or google-chrome")
EVERYTHING = everything()
WALK = load_level("first-steps/01-walk")
"""A level that is enlarged by one and a half."""
WALK_INPUTS = known_solutions()["first-steps/01-walk"]
INPUTS = bytes([2] * 30 + [3] * 20 + [4] * 40)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    evil = "<img src=x onerror=\"document.title='hacked'\"><script>document.title='hacked'</script>"
    files = [
        level_file(folder / "a.map", WINNABLE),
        level_file(folder / "b.map", DEADLY, title=evil, author="someone"),
        level_file(folder / "c.map", EVERYTHING),
        level_file(folder / "walk.map", WALK),
    ]
    runs = [
        recording_file(folder / "all.replay", EVERYTHING, INPUTS),
        recording_file(folder / "walk.replay", WALK, WALK_INPUTS),
        recording_file(folder / "fast.replay"),
        recording_file(folder / "slow.replay", inputs=bytes(20) + RIGHT),
    ]
    assert gallery(*files, "--recordings", *runs, "--output", folder / "site", "--title", "Some levels") == 0
    return folder / "site"


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    # Pictures of files may be read back, which pages from the disk are not allowed otherwise.
    with Browser(tmp_path_factory.mktemp("profile"), 1280, 800, "--allow-file-access-from-files") as browser:
        yield browser


@pytest.fixture
def browser(running):
    running.errors.clear()
    running.resize(1280, 800)
    running.prefer(prefers_reduced_motion="reduce")  # nothing plays by itself
    yield running
    assert running.errors == []


def shown(browser):
    return browser.evaluate("[...document.querySelectorAll('#levels li:not([hidden])')].map(e => e.dataset.order)")


def frame(browser):
    return int(browser.evaluate("document.getElementById('time').value"))


def text(browser, identity):
    return browser.evaluate(f"document.getElementById('{identity}').textContent")


def test_the_list_is_searched_and_sorted(browser, site):
    browser.open(site / "index.html")
    assert text(browser, "count") == "4 levels"
    assert shown(browser) == ["0", "1", "2", "3"]
    browser.press("/")
    for key in "deadly":
        browser.press(key)
    assert (shown(browser), text(browser, "count")) == ([], "0 of 4 levels")
    assert browser.evaluate("document.getElementById('nothing').checkVisibility()")
    browser.press("Escape")
    for key in "mine so":
        browser.press(key)
    assert shown(browser) == ["1"]  # an entity and part of an author's name
    browser.press("Escape")
    browser.evaluate("sort.value = 'entities'; sort.dispatchEvent(new Event('change'))")
    assert shown(browser) == ["2", "3", "0", "1"]
    browser.click("#playable")
    assert shown(browser) == ["2", "3", "0"]
    browser.open(site / "index.html", "#q=winn")
    assert shown(browser) == ["0"]


def test_arrow_keys_and_enter_open_a_level(browser, site):
    browser.open(site / "index.html")
    focused = "document.activeElement.closest('li')?.dataset.order"
    browser.press("ArrowDown")
    assert browser.evaluate(focused) == "0"
    browser.press("ArrowRight")
    browser.press("ArrowRight")
    assert browser.evaluate(focused) == "2"
    browser.press("ArrowLeft")
    assert browser.evaluate(focused) == "1"
    browser.press("Enter")
    browser.wait("location.pathname.endsWith('/levels/b.html') && document.readyState === 'complete'")


def test_texts_of_strangers_do_nothing(browser, site):
    for page in ("index.html", "levels/b.html"):
        browser.open(site / page)
        assert browser.evaluate("document.title").endswith("Some levels")
        assert browser.evaluate("document.querySelectorAll('img[src=x]').length") == 0


def test_the_player_shows_the_frames_of_the_simulator(browser, site):
    """The values that the page decodes are those of the package."""
    browser.open(site / "levels" / "c.html")
    levels = pack([EVERYTHING])
    tracks = Tracks(levels, np.frombuffer(INPUTS, np.uint8))
    run = "(level => new Run(level, level.runs[0]))(JSON.parse(document.getElementById('data').textContent))"
    decoded = browser.evaluate(f"(r => r.start.map((_, v) => Array.from({{length: 91}}, (_, f) => r.at(v, f))))({run})")
    assert decoded == [tracks.column(value).tolist() for value in range(len(tracks.start))]


@pytest.mark.parametrize(("page", "level", "inputs"), [("c", EVERYTHING, INPUTS), ("walk", WALK, WALK_INPUTS)])
def test_the_canvas_is_the_picture_of_the_package(browser, site, page, level, inputs):
    browser.open(site / "levels" / f"{page}.html")
    session, area = Session(level), used_area_of(level.raw)
    session.play(inputs[:42])
    expected = world_picture(session.levels, session.worlds, 0, 2 * zoom_of(area), area)
    assert _difference(browser, 42, expected) < 2
    assert _difference(browser, 41, expected) > 1.2 * _difference(browser, 42, expected)


def _difference(browser, wanted, expected):
    """Return the mean difference of the canvas in a frame from a picture, where the picture is not plain."""
    browser.evaluate(f"time.value = {wanted}; time.dispatchEvent(new Event('input'))")
    assert frame(browser) == wanted
    data = browser.evaluate(
        "fetch(document.getElementById('canvas').toDataURL()).then(r => r.arrayBuffer())"
        ".then(b => Array.from(new Uint8Array(b)))"
    )
    canvas = cv2.imdecode(np.frombuffer(bytes(data), np.uint8), cv2.IMREAD_COLOR)[:, :, ::-1]
    return np.abs(canvas.astype(int) - expected).mean()


def test_keys_of_the_player(browser, site):
    browser.open(site / "levels" / "a.html")
    assert frame(browser) == 0
    for key, shift, expected in [
        ("ArrowRight", False, 1),
        ("ArrowRight", True, 61),
        ("ArrowLeft", False, 60),
        ("ArrowLeft", True, 0),
        ("End", False, 90),
        ("Home", False, 0),
    ]:
        browser.press(key, shift)
        assert frame(browser) == expected, key
    assert text(browser, "clock") == "0.000 / 1.500 s"
    browser.press("ArrowRight")
    assert browser.evaluate("[...document.querySelectorAll('kbd.down')].map(e => e.textContent)") == ["→"]
    for key, expected in [("-", "0.5"), ("-", "0.25"), ("-", "0.25"), ("+", "0.5"), *[("+", "4")] * 0]:
        browser.press(key)
        assert browser.evaluate("speed.value") == expected
    for key, box in (("l", "loop"), ("p", "path")):
        before = browser.evaluate(f"document.getElementById('{box}').checked")
        browser.press(key)
        assert browser.evaluate(f"document.getElementById('{box}').checked") is not before
    browser.press("2")
    assert text(browser, "clock").endswith("/ 1.833 s")
    browser.press("1")
    browser.press("g")
    assert text(browser, "clock").endswith("/ 1.833 s")  # the longest run that is shown


def test_an_address_names_a_run_and_a_frame(browser, site):
    browser.open(site / "levels" / "a.html", "#run=2&frame=42")
    assert frame(browser) == 42
    assert text(browser, "clock") == "0.700 / 1.833 s"
    assert browser.evaluate("document.getElementById('play').getAttribute('aria-label')") == "Play"
    browser.press("ArrowRight")
    browser.press("c")
    assert browser.evaluate("location.hash") == "#run=2&frame=43"


def test_the_recording_of_each_run_is_downloaded(browser, site):
    browser.open(site / "levels" / "a.html")
    files = browser.evaluate("[...document.querySelectorAll('a.download')].map(e => e.getAttribute('href'))")
    recordings = [load_recording(site / "levels" / file) for file in files]
    assert len(recordings) == 2
    assert all(recording.verify().agrees for recording in recordings)


def test_it_plays_to_the_end(browser, site):
    browser.open(site / "levels" / "a.html")
    browser.press("l")
    for _ in range(3):
        browser.press("+")
    browser.press(" ")
    assert browser.evaluate("play.getAttribute('aria-label')") == "Pause"
    browser.wait("document.getElementById('play').getAttribute('aria-label') === 'Play'")
    assert frame(browser) == 90
    assert (text(browser, "gold"), text(browser, "state")) == ("1/1", "won")
    browser.click("#back")
    assert frame(browser) == 89


def test_it_plays_by_itself_unless_motion_is_reduced(browser, site):
    browser.prefer(prefers_reduced_motion="no-preference")
    browser.open(site / "levels" / "a.html")
    browser.wait("Number(document.getElementById('time').value) > 0")
    browser.click("#play")
    assert browser.evaluate("document.getElementById('play').getAttribute('aria-label')") == "Play"


def test_pages_fit_a_phone(browser, site):
    browser.resize(390, 844, 2, mobile=True)
    for page in ("index.html", "levels/a.html", "levels/b.html", "levels/c.html"):
        browser.open(site / page)
        assert browser.evaluate("document.documentElement.scrollWidth") == 390, page
    browser.evaluate("document.querySelector('h1').style.width = '500px'")
    assert browser.evaluate("document.documentElement.scrollWidth") > 390


def test_a_high_level_and_its_controls_fit_a_screen(browser, tmp_path):
    assert gallery("jumps/05-tower", "--output", tmp_path / "site") == 0
    browser.open(tmp_path / "site" / "levels" / "jumps-05-tower.html")
    ends = "['canvas', 'play', 'link'].map(name => document.getElementById(name).getBoundingClientRect().bottom)"
    assert max(browser.evaluate(ends)) <= 800
    browser.evaluate("document.getElementById('canvas').style.maxHeight = 'none'")
    assert max(browser.evaluate(ends)) > 800
    poster = browser.evaluate("getComputedStyle(document.getElementById('canvas')).backgroundImage")
    assert poster.endswith('/jumps-05-tower-small.webp")')


def test_controls_have_names(browser, site):
    for page in ("index.html", "levels/a.html"):
        browser.open(site / page)
        nameless = "[...document.querySelectorAll('button, input, select, canvas, a')].filter(e => !(e.ariaLabel ||"
        nameless += " e.textContent.trim() || e.labels?.[0]?.textContent.trim())).map(e => e.outerHTML)"
        assert browser.evaluate(nameless) == []


def test_errors_of_pages_are_noticed(running, tmp_path):
    (tmp_path / "bad.html").write_text("<script>nothing()</script><img src='missing.png'>")
    running.open(tmp_path / "bad.html")
    running.wait("document.readyState === 'complete'")
    assert any("nothing is not defined" in error for error in running.errors)
