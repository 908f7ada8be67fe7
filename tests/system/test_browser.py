"""The pages of a gallery in Chromium and Firefox, by real events: the list, and the five things to do with a level."""

import base64
import json
import shutil
import time
from dataclasses import replace

import cv2
import numpy as np
import pytest

from nclone_env import create_environment
from nclone_env.benchmark.attempts import Run, replay
from nclone_env.benchmark.submission import Submission
from nclone_env.benchmark.track import load_track
from nclone_env.cli.app import main
from nclone_env.game import INPUT_OF_ACTION
from nclone_env.level.build import build_room, everything
from nclone_env.level.formats.map_bytes import read_map
from nclone_env.level.level_set import pack
from nclone_env.level.load import load_level, load_levels
from nclone_env.level.solutions import known_solutions
from nclone_env.render.picture import level_picture, used_area_of, world_picture, zoom_of
from nclone_env.replay.recording import Recording, load_recording
from nclone_env.sim.session import Session
from nclone_env.train.policies.files import policy_file
from nclone_env.train.policies.policy import load_policy
from profiling.checks.web_rows import OF_RUN, PER_SHOOTER, PER_SPRITE

from ..gallery.browser import Chromium
from ..gallery.firefox import BROWSERS
from ..gallery.sites import DEADLY, RIGHT, WINNABLE, gallery, level_file, recording_file
from ..level.level_bases import make_attract
from ..profiling.checks.test_web_rows import Shown

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


@pytest.fixture(scope="module", params=BROWSERS)
def running(request, tmp_path_factory):
    # Pictures of files may be read back, which pages from the disk are not allowed otherwise; Firefox has a preference.
    switches = ["--allow-file-access-from-files"] if request.param is Chromium else []
    with request.param(tmp_path_factory.mktemp("profile"), 1280, 800, *switches) as browser:
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


def play(browser, site, level="a", mode="watch", more=""):
    """Open a level in a mode."""
    browser.open(site / "play.html", f"#level={level}&mode={mode}{more}")


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


def test_levels_in_view_are_drawn_with_their_best_run_in_the_theme(browser, site):
    browser.open(site / "index.html")
    canvas = "document.querySelector('[data-order=\"3\"] canvas')"
    for theme, other in (("light", "dark"), ("dark", "light")):
        browser.prefer(prefers_reduced_motion="reduce", prefers_color_scheme=theme)
        browser.wait(f"{canvas}.width > 0 && {canvas}.toDataURL() !== window.before")
        browser.evaluate(f"window.before = {canvas}.toDataURL()")
        picture = picture_of(browser, canvas)
        plain = {name: level_picture(WALK, 1, crop=True, theme=name) for name in (theme, other)}
        size = picture.shape[1::-1]
        small = {name: cv2.resize(each, size, interpolation=cv2.INTER_AREA) for name, each in plain.items()}
        apart = {name: np.abs(picture.astype(int) - each).mean(axis=2) for name, each in small.items()}
        assert 0.002 < (apart[theme] > 40).mean() < 0.1  # the path
        assert apart[theme].mean() < 0.2 * apart[other].mean()
    browser.evaluate("document.getElementById('levels').style.marginTop = '5000px'")
    browser.wait(f"{canvas}.width === 0")  # what is out of view takes no memory


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
    browser.wait("location.pathname.endsWith('/play.html') && document.body?.dataset.ready === ''")
    assert text(browser, "byline") == "b.map · someone"


def test_texts_of_strangers_do_nothing(browser, site):
    for page, anchor in (("index.html", ""), ("play.html", "#level=b")):
        browser.open(site / page, anchor)
        assert browser.evaluate("document.title").endswith("Some levels")
        assert browser.evaluate("document.querySelectorAll('img[src=x]').length") == 0


@pytest.mark.slow
def test_the_page_has_the_bits_of_the_package(browser, site):
    """Each frame's row, and the hash of the world in the end; another input gives another hash."""
    play(browser, site, "c")
    code = "for (let k = 1; k <= i.length; k++) { r.at(k); f.push([...r.rows()]); } return [f, r.hash().toString()];"
    code = f"JSON.stringify((i => {{ const r = page.doc.sim.run(i), f = []; {code} }})({list(INPUTS)}))"
    found = json.loads(browser.evaluate(code))
    shown = Shown(pack([EVERYTHING]), np.frombuffer(INPUTS, np.uint8))
    beams, ends = PER_SPRITE * shown.sprites, -OF_RUN
    rows = np.array(found[0])
    assert (rows[:, :beams] == shown.rows[:, :beams]).all()
    assert (rows[:, beams:ends:PER_SHOOTER] == shown.rows[:, beams:ends:PER_SHOOTER]).all()
    assert (rows[:, ends:-1] == shown.rows[:, ends:-1]).all()
    assert rows[:, -1].tolist() == list(INPUTS)
    session = Session(EVERYTHING)
    session.play(INPUTS)
    assert int(found[1]) == session.hash()
    other = Session(EVERYTHING)
    other.play(bytes([0, *INPUTS[1:]]))
    assert int(found[1]) != other.hash()


@pytest.mark.parametrize(("page", "level", "inputs"), [("c", EVERYTHING, INPUTS), ("walk", WALK, WALK_INPUTS)])
def test_the_canvas_is_the_picture_of_the_package(browser, site, page, level, inputs):
    play(browser, site, page)
    width = browser.evaluate("canvas.width")  # no more pixels than are seen: drawing takes a third of the time
    browser.evaluate("Object.defineProperty(window, 'devicePixelRatio', { value: 2 }); page.fit()")
    session, area = Session(level), used_area_of(level.raw)
    session.play(inputs[:42])
    expected = world_picture(session.levels, session.worlds, 0, 2 * zoom_of(area), area)
    assert _difference(browser, 42, expected) < 2
    assert _difference(browser, 41, expected) > 1.2 * _difference(browser, 42, expected)
    assert width == round(expected.shape[1] / 2) == browser.evaluate("canvas.clientWidth")


def _difference(browser, wanted, expected):
    """Return the mean difference of the canvas in a frame from a picture."""
    browser.evaluate(f"time.value = {wanted}; time.dispatchEvent(new Event('input'))")
    assert frame(browser) == wanted
    return np.abs(picture_of(browser, "canvas").astype(int) - expected).mean()


def picture_of(browser, canvas):
    """Return the pixels of a canvas, RGB."""
    data = browser.evaluate(f"{canvas}.toDataURL()").partition(",")[2]
    return cv2.imdecode(np.frombuffer(base64.b64decode(data), np.uint8), cv2.IMREAD_COLOR)[:, :, ::-1]


def test_keys_of_watching(browser, site):
    play(browser, site)
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
    for key, expected in [("-", "0.5"), ("-", "0.25"), ("-", "0.125"), ("-", "0.125"), ("+", "0.25")]:
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


def test_a_run_and_its_ghosts_are_drawn_each_where_it_is(browser, site):
    play(browser, site, more="&run=1&frame=60")
    kept = "page.scene.draw = (row, { ghosts }) => { window.drawn = [row, ...ghosts.map((ghost) => ghost.row)].map"
    browser.evaluate(f"{kept}((values) => [...values]); }}")
    browser.press("g")
    own, ghost = browser.evaluate("drawn")
    wanted = "page.doc.runs.map((run) => [...page.runOf(run).at(60).rows()])"
    assert [own, ghost] == browser.evaluate(wanted)
    assert own != ghost


def test_an_address_names_a_run_and_a_frame(browser, site):
    play(browser, site, more="&run=2&frame=42")
    assert (frame(browser), text(browser, "clock")) == (42, "0.700 / 1.833 s")
    assert browser.evaluate("document.getElementById('play').getAttribute('aria-label')") == "Play"


def test_it_plays_to_the_end(browser, site):
    play(browser, site)
    browser.press("l")
    for _ in range(3):
        browser.press("+")
    browser.press(" ")
    assert browser.evaluate("document.getElementById('play').getAttribute('aria-label')") == "Pause"
    browser.wait("document.getElementById('play').getAttribute('aria-label') === 'Play'")
    assert frame(browser) == 90
    assert (text(browser, "gold"), text(browser, "state")) == ("1/1", "won")
    browser.click("#back")
    assert frame(browser) == 89


def test_it_plays_by_itself_unless_motion_is_reduced(browser, site):
    browser.prefer(prefers_reduced_motion="no-preference")
    browser.open(site / "play.html", "#level=a")
    browser.wait("Number(document.getElementById('time').value) > 0")
    browser.click("#play")
    assert browser.evaluate("document.getElementById('play').getAttribute('aria-label')") == "Play"


def run_of_page(browser):
    """Return the inputs of the live run, and the hash of its world."""
    inputs, found = json.loads(browser.evaluate("JSON.stringify([[...page.take.inputs], page.take.hash().toString()])"))
    return bytes(inputs), int(found)


def same_run(level, inputs, found):
    session = Session(level)
    session.play(inputs)
    return session.hash() == found


@pytest.mark.slow
def test_a_level_is_played_by_keys_and_the_saved_run_is_accepted(browser, site, tmp_path, capsys):
    play(browser, site, mode="play")
    assert text(browser, "message") == "Move to start"
    browser.key("z", True)
    browser.wait("page.take.frame > 5")
    browser.key("z", False)
    browser.wait("page.take.ninja.airborne === 0 && page.take.frame > 20")
    browser.key("ArrowRight", True)
    browser.wait("page.take.state === 'won'")
    browser.key("ArrowRight", False)
    assert text(browser, "message").startswith("Won in ")
    inputs, found = run_of_page(browser)
    assert set(inputs) >= {0, 1, 2}
    assert same_run(WINNABLE, inputs, found)
    middle = (inputs.index(2) + len(inputs)) // 2  # on the way to the right: a jump on the spot leaves no trace
    assert not same_run(WINNABLE, bytes([*inputs[:middle], 0, *inputs[middle + 1 :]]), found)
    browser.download(tmp_path)
    browser.press("s")
    file = arrived(tmp_path)
    assert main(["replay", "verify", str(file)]) == 0
    assert load_recording(file).inputs.tobytes() == inputs
    browser.press("r")
    assert (browser.evaluate("page.take.frame"), text(browser, "message")) == (0, "")


_UNFINISHED = (".crdownload", ".part")


def arrived(folder):
    """Return the one file that the browser has saved."""
    for _ in range(500):
        files = [path for path in folder.iterdir() if path.suffix not in _UNFINISHED and path.stat().st_size]
        if files:
            return files[0]
        time.sleep(0.02)
    raise AssertionError("nothing was saved")


def test_no_key_is_lost_and_none_is_held_by_a_hidden_page(browser, site):
    play(browser, site, mode="play")
    browser.evaluate("page.play(false); page.play(true)")
    key = "dispatchEvent(new KeyboardEvent('{}', {{ code: 'KeyZ', key: 'z' }}));"
    browser.evaluate(key.format("keydown") + key.format("keyup"))  # shorter than a frame
    browser.wait("page.take.frame > 5")
    inputs, _ = run_of_page(browser)
    assert inputs[:2] == bytes([1, 0])
    browser.key("ArrowRight", True)
    browser.wait("page.held() === 2")
    hide = "Object.defineProperty(document, 'hidden', { value: true, configurable: true });"
    browser.evaluate(f"{hide} document.dispatchEvent(new Event('visibilitychange'))")
    before = browser.evaluate("page.take.frame")
    assert browser.evaluate("page.held()") == 0
    assert browser.evaluate("new Promise((done) => setTimeout(() => done(page.take.frame), 200))") == before
    browser.key("ArrowRight", False)
    browser.key("z", True)
    browser.wait(f"page.take.frame > {before} + 30")
    browser.key("z", False)
    browser.key("Backspace", True)  # and let go in another window
    still = "dispatchEvent(new Event('blur')), page.take.frame"
    last = browser.evaluate(f"new Promise((done) => setTimeout(() => done(({still})), 400))")
    assert last < before + 30
    assert browser.evaluate("new Promise((done) => setTimeout(() => done(page.take.frame), 200))") == last
    browser.key("Backspace", False)


def test_a_finger_rewinds(browser, site):
    play(browser, site, mode="play")
    browser.key("ArrowRight", True)
    browser.wait("page.take.frame > 30")
    browser.key("ArrowRight", False)
    last = browser.evaluate("page.play(false), page.take.frame")
    browser.click("#back")
    assert browser.evaluate("page.take.frame") == last - 1
    browser.evaluate("page.play(true); back.dispatchEvent(new PointerEvent('pointerdown'))")
    browser.wait(f"page.take.frame < {last - 5}")
    browser.evaluate("back.dispatchEvent(new PointerEvent('pointerup'))")


def test_a_reload_keeps_a_run_that_goes_on_and_branches(browser, site):
    play(browser, site, mode="play")
    browser.key("ArrowRight", True)
    browser.wait("page.take.frame > 30")
    browser.key("ArrowRight", False)
    made = "[...page.take.inputs.slice(0, page.take.frame)]"
    played = browser.evaluate(f"page.play(false), {made}")
    browser.evaluate("page.modes.tas.branch(page.take.inputs.slice(0, 20)), page.keep()")
    held = (
        "(name) => files.unpack(files.fromText(new URLSearchParams(location.hash.slice(1)).get(name) ?? ''), 1 << 20)"
    )
    lengths = f"Promise.all(['inputs', 'branch'].map({held}))"
    browser.wait(
        f"{lengths}.then(([run, branch]) => run.length === {len(played)} && branch.length === 20, () => false)"
    )
    browser.open(site / "play.html", browser.evaluate("location.hash"))
    assert (browser.evaluate(made), text(browser, "message")) == (played, "Move to go on")
    assert browser.evaluate("page.modes.tas.branches.map((inputs) => [...inputs])") == [played[:20]]


def test_death_has_a_cause(browser, site):
    play(browser, site, "b", "play")
    browser.evaluate("page.speed('4')")
    browser.key("ArrowRight", True)
    browser.wait("page.take.state === 'died'")
    browser.key("ArrowRight", False)
    assert text(browser, "message").startswith("Dead: mine after ")
    assert text(browser, "state") == "died: mine"
    last = browser.evaluate("page.take.frame")
    browser.press("Backspace")
    browser.wait(f"page.take.frame < {last} && page.take.state === 'playing'")


def test_a_run_is_made_frame_by_frame(browser, site):
    play(browser, site, mode="tas")
    browser.evaluate("page.take.reset(new Uint8Array(0)); page.show()")
    browser.key("ArrowRight", True)
    for _ in range(3):
        browser.press(".")
    browser.key("z", True)
    browser.press(".")
    browser.key("z", False)
    browser.key("ArrowRight", False)
    browser.press(":")
    assert browser.evaluate("document.getElementById('text').value") == "3R 1RJ 10."
    browser.press("k")
    browser.press("[")
    browser.press("Backspace")
    assert browser.evaluate("[page.take.frame, page.take.length]") == [12, 14]
    browser.evaluate("document.getElementById('text').value = '20R 5L'")
    browser.click("#apply")
    assert browser.evaluate("page.take.length") == 25
    browser.click("#undo")
    assert browser.evaluate("[page.take.frame, page.take.length]") == [12, 14]
    browser.click("#branches button")
    inputs, _ = run_of_page(browser)
    assert inputs == bytes([2, 2, 2, 3] + [0] * 10)
    browser.press("End")
    assert same_run(WINNABLE, *run_of_page(browser))
    box = browser.evaluate("(b => [b.x, b.y])(document.getElementById('roll').getBoundingClientRect())")
    browser.evaluate("page.take.at(0); page.show()")
    browser.drag((box[0] + 14 * 4 + 7, box[1] + 28 * 1.5), (box[0] + 14 * 7 + 7, box[1] + 28 * 1.5))  # bars of left
    assert list(run_of_page(browser)[0])[3:9] == [3, 4, 4, 4, 4, 0]


def test_a_link_holds_a_whole_run(browser, site):
    play(browser, site, mode="tas")
    inputs = bytes(np.random.default_rng(1).choice([0, 1, 2, 3, 4, 5], 5000).astype(np.uint8))
    browser.evaluate(f"page.take.reset({list(inputs)}); page.take.at(300); page.show()")
    browser.click("#link")
    browser.wait("location.hash.includes('inputs')")
    anchor = browser.evaluate("location.hash")
    play(browser, site, "b")
    browser.open(site / "play.html", anchor)
    assert browser.evaluate("[page.take.frame, page.take.length]") == [300, 5000]
    assert run_of_page(browser)[0] == inputs
    browser.press(".")  # a reload keeps what is being made
    browser.wait(f"location.hash.includes('frame=301') && location.hash !== {json.dumps(anchor)}")
    browser.open(site / "play.html", browser.evaluate("location.hash"))
    assert run_of_page(browser)[0] == inputs[:300] + bytes(1)
    browser.evaluate("location.hash = '#level=a&run=1&frame=20'")  # a link that is pasted into the same page
    browser.wait("document.body.dataset.mode === 'watch' && page.modes.watch.frame === 20")


@pytest.mark.slow
def test_a_level_is_edited_played_and_saved(browser, site, tmp_path):
    play(browser, site, mode="edit")

    def edited():
        return read_map(bytes(browser.evaluate("[...files.writeMap(page.modes.edit.level)]")))

    browser.drag(point(browser, 36, 36), point(browser, 180, 36))
    assert edited().tiles[0, :7].tolist() == [1] * 7
    browser.click("#tiles [title='empty']")
    browser.drag(point(browser, 36, 36), point(browser, 84, 60), shift=True)
    assert edited().tiles[:2, :3].tolist() == [[0] * 3] * 2
    before = edited().records.tolist()
    browser.click("#entities [title='zap drone']")
    browser.press("r")
    browser.drag(point(browser, 300, 348))
    assert [14, 50, 58, 1, 0] in edited().records.tolist()
    browser.press("m")
    assert [14, 50, 58, 1, 1] in edited().records.tolist()
    browser.press("ArrowLeft")
    assert [14, 49, 58, 1, 1] in edited().records.tolist()
    browser.drag(point(browser, 294, 348), button="right")
    assert edited().records.tolist() == before
    browser.click("#entities [title='exit']")
    browser.drag(point(browser, 400, 348))
    browser.click("#entities [title='locked door']")
    browser.drag(point(browser, 420, 348))
    assert len(edited().records) == len(before) + 4
    browser.press("z", control=True)
    assert len(edited().records) == len(before) + 2
    level = edited()
    for kind, suffix in (("map", ".map"), ("pack", ".txt"), ("toml", ".toml"), ("attract", "")):
        folder = tmp_path / kind
        folder.mkdir()
        browser.download(folder)
        chosen = "document.getElementById('export')"
        browser.evaluate(f"{chosen}.value = '{kind}'; {chosen}.dispatchEvent(new Event('change'))")
        file = arrived(folder)
        assert file.suffix == suffix
        assert load_level(str(file)).raw.digest == level.digest
    browser.click("#test")
    assert browser.evaluate("document.body.dataset.mode") == "play"
    browser.key("ArrowRight", True)
    browser.wait("page.take.frame > 10")
    browser.key("ArrowRight", False)
    browser.press("Enter")
    assert same_run(level, *run_of_page(browser))
    browser.click("[data-mode=edit]")
    browser.click("#next")
    browser.click("#unedit")  # neither a test nor another level loses the edited one
    assert edited().digest == level.digest
    browser.click("#unedit")
    assert len(edited().records) == len(before)
    browser.click("[data-mode=watch]")
    browser.wait("location.hash.startsWith('#map=')")
    browser.open(site / "play.html", browser.evaluate("location.hash"))
    held = read_map(bytes(browser.evaluate("[...files.writeMap(page.doc.level)]")))
    assert (held.tiles.tolist(), held.records.tolist()) == (level.tiles.tolist(), before)


def test_a_level_is_edited_by_keys_alone_and_a_reload_keeps_it(browser, site):
    play(browser, site, mode="edit")
    records = browser.evaluate("page.modes.edit.level.records")

    def tab_to(selector, shift=False):
        for _ in range(30):
            browser.press("Tab", shift)
            if browser.evaluate(f"document.activeElement.matches({json.dumps(selector)})"):
                return
        raise AssertionError(selector)

    tab_to("#palette [aria-checked=true]")  # one stop, as a group of radio buttons has
    before = browser.evaluate("document.activeElement.title")
    browser.press("ArrowLeft")
    while (now := browser.evaluate("document.activeElement.title")) not in ("gold", before):
        browser.press("ArrowLeft")
    assert now == "gold"
    tab_to("#canvas", shift=True)
    for key in ("ArrowDown", "ArrowRight", "Enter", "ArrowUp", "Enter", "ArrowRight", "Enter"):
        browser.press(key)

    def made():
        return [record for record in browser.evaluate("page.modes.edit.level.records") if record not in records]

    assert made() == [[2, 38, 37, 0, 0], [2, 42, 38, 0, 0]]
    browser.press("Escape")
    browser.press("Delete")
    assert made() == [[2, 38, 37, 0, 0]]
    digest = "files.hex(files.digest(page.modes.edit.level))"
    edited = browser.evaluate(digest)
    held = "files.unpack(files.fromText(new URLSearchParams(location.hash.slice(1)).get('map') ?? ''), 1 << 20)"
    held += ".then((map) => files.hex(files.digest(files.readMap(map))))"
    browser.wait(f"{held}.then((found) => found === '{edited}', () => false)")
    browser.open(site / "play.html", browser.evaluate("location.hash"))
    assert browser.evaluate(f"[{digest}, document.body.dataset.mode]") == [edited, "edit"]


@pytest.mark.parametrize("anchor", ["#map=AAAA", "#map=%25%25", "#level=b&inputs=A", "#level=nosuch&frame=3"])
def test_a_damaged_link_is_named_above_a_level(browser, site, anchor):
    browser.open(site / "play.html", anchor)
    assert ": expected " in text(browser, "message")
    browser.click("[data-mode=play]")
    assert browser.evaluate("page.doc.name") == ("b" if "level=b" in anchor else "a")


def point(browser, x, y):
    """Return the place of the window above a place of the world."""
    (left, top), (one, _) = browser.evaluate("[page.scene.world(0, 0), page.scene.world(1, 0)]")
    return (x - left) / (one - left), (y - top) / (one - left)


def choose(browser, identity, value):
    browser.evaluate(f"{identity}.value = '{value}'; {identity}.dispatchEvent(new Event('change'))")


def played_by(policy, level):
    """Return the inputs of an episode with the most probable actions, in Python."""
    env = create_environment(policy.environment.replace(levels=(level,)))
    (observation, _), inputs, over = env.reset(seed=0), [], False
    while not over:
        action = policy.act(observation, argmax=True)
        observation, _, terminated, truncated, info = env.step(action)
        inputs += [INPUT_OF_ACTION[action]] * int(info["frames"])
        over = terminated or truncated
    env.close()
    return inputs


@pytest.mark.parametrize("name", ["builtin", pytest.param("game-motion", marks=pytest.mark.slow)])
def test_a_policy_plays_live_as_in_python(browser, site, tmp_path, capsys, name):
    play(browser, site, "walk")
    browser.evaluate("loop.checked = false; page.speed('4')")
    choose(browser, "policy", name)
    browser.wait("page.live.on")
    browser.click("#runs .ghost")  # also that of the only run
    assert browser.evaluate("page.doc.runs.map((run) => run.ghost)") == [True]
    browser.wait("page.live.run?.state === 'won'")
    assert browser.evaluate("page.doc.runs[0].run.frame") > 0  # it is where the policy was
    assert text(browser, "message").startswith("Won after ")
    assert not browser.evaluate("time.checkVisibility()")
    assert browser.evaluate("[...page.live.run.inputs]") == played_by(load_policy(name, levels=("first-steps",)), WALK)
    assert browser.evaluate("location.hash") == f"#level=walk&policy={name}"
    browser.download(tmp_path)
    browser.press("s")
    assert main(["replay", "verify", str(arrived(tmp_path))]) == 0
    capsys.readouterr()
    browser.click("#runs [name=run]")
    assert browser.evaluate("!page.live.on && time.checkVisibility() && policy.value === ''")


def test_a_checkpoint_that_is_dropped_plays(browser, site, tmp_path):
    shutil.copyfile(policy_file("builtin"), tmp_path / "my run.pt")
    play(browser, site, "walk", "play")
    browser.drop(tmp_path / "my run.pt")
    browser.wait("page.live.on && page.live.name === 'my run' && document.body.dataset.mode === 'watch'")
    browser.wait("page.live.run.frame > 8")
    assert browser.evaluate("[policy.value, location.hash]") == ["my run", "#level=walk"]
    (tmp_path / "my run.pt").write_bytes(b"PK" + bytes(50))
    browser.drop(tmp_path / "my run.pt")
    browser.wait("message.textContent.includes('expected a zip file')")


def test_the_ninja_and_the_level_change_while_a_policy_plays(browser, site):
    play(browser, site, "walk", more="&policy=builtin")
    assert not browser.evaluate("page.playing")  # motion is reduced
    browser.press("ArrowRight")
    x, y = browser.evaluate("[page.live.run.ninja.x, page.live.run.ninja.y]")
    browser.drag(point(browser, x, y), point(browser, x + 30, y - 40), point(browser, x + 60, y - 80))
    assert not browser.evaluate("page.playing")  # a drag is no click
    moved = browser.evaluate("[page.live.run.ninja.x, page.live.run.ninja.y]")
    assert moved == pytest.approx([x + 60, y - 80], abs=2)
    browser.press("s")
    browser.wait("message.textContent.includes('was changed by hand')")
    browser.press(" ")
    browser.wait(f"page.live.run.frame > 5 && page.live.run.ninja.y !== {moved[1]}")
    browser.click("[data-mode=edit]")
    browser.wait("page.live.run.frame > 5 && page.live.run.state === 'playing'")
    browser.evaluate("document.activeElement.blur()")  # space would press the tab again
    browser.press(" ")
    before = browser.evaluate("page.live.run.ninja")
    browser.drag(point(browser, 36, 36), point(browser, 180, 36))
    after = browser.evaluate("page.live.run.ninja")
    assert [after[name] for name in ("x", "y", "vx", "vy")] == [before[name] for name in ("x", "y", "vx", "vy")]
    assert browser.evaluate("page.modes.edit.level.tiles[3]") == 1
    browser.press(" ")
    browser.wait(f"page.live.run.ninja.x !== {after['x']}")
    browser.click("[data-mode=watch]")
    assert browser.evaluate("page.live.run.level === page.doc.sim && page.playing")


@pytest.mark.slow
@pytest.mark.parametrize("running", BROWSERS[:1], indirect=True)
def test_an_hour_of_policies_leaves_memory_as_it_is(browser, site):
    """Twelve minutes of each policy, on a level that is edited every 20 seconds. Firefox does not say what it uses."""
    play(browser, site, "c", "edit")
    names = browser.evaluate("game.policies.map(({ name }) => name)")
    twenty_seconds = "for (let at = 0; at < 1200; at += 60) page.live.tick(page.live.run.level, 60)"
    used = []
    for _ in range(2):
        for name in names:
            choose(browser, "policy", name)
            browser.wait(f"page.live.name === '{name}'")
            for part in range(18):
                browser.evaluate(twenty_seconds)
                browser.drag(point(browser, 36 + 24 * part, 36))
                browser.press("z", control=True)
        used.append((browser.heap(), browser.evaluate("page.live.run.level.memory.bytes.length")))
    (first, room), (last, same) = used
    assert same == room
    assert last - first < 1 << 18  # of the browser itself: less than a byte a frame


@pytest.mark.slow
def test_files_that_are_dropped_are_opened_and_checked(browser, site, tmp_path):
    inputs = RIGHT[: int((Session(DEADLY).record(RIGHT).ninjas["state"] == 6).argmax()) + 1]
    (tmp_path / "attract").write_bytes(make_attract(DEADLY.raw, inputs))
    (tmp_path / "early").write_bytes(make_attract(DEADLY.raw, inputs[:-1]))
    recording_file(tmp_path / "good.replay", EVERYTHING, INPUTS)
    forged = replace(Recording.of(WINNABLE, RIGHT), trajectory_hash="0" * 16)
    forged.save(tmp_path / "forged.replay")
    (tmp_path / "damaged.replay").write_bytes((tmp_path / "good.replay").read_bytes()[:-1])
    play(browser, site)
    names = ("attract", "early", "good.replay", "forged.replay")
    for name in names:
        browser.drop(tmp_path / name)
        browser.wait(f"[...verdicts.children].some((line) => line.textContent.startsWith('{name}: '))")
    lines = browser.evaluate("[...verdicts.children].map((line) => line.textContent)")
    assert [line.split(":")[1].strip() for line in lines] == ["verified", "refused", "verified", "refused"]
    assert "expected trajectory hash 0000000000000000, got " in lines[3]
    assert browser.evaluate("page.doc.name") == "a"  # a level of this gallery
    browser.drop(tmp_path / "damaged.replay")
    browser.wait("document.getElementById('message').textContent.includes('expected a file of')")
    level_file(tmp_path / "new.map", build_room("gold 50 58", title="Fresh"))
    browser.drop(tmp_path / "damaged.replay", tmp_path / "new.map")
    browser.wait("document.getElementById('title').textContent === 'Fresh'")
    browser.wait("message.textContent.startsWith('damaged.replay: ')")  # also with a good file behind it
    browser.click("#link")
    browser.wait("location.hash.includes('map=')")


@pytest.mark.slow
def test_a_forged_episode_of_a_submission_is_named(browser, tmp_path):
    """All levels of the track are in the gallery; random actions are as good as any policy."""
    track = load_track("Builtin-v1")
    levels = [level.reference for level in track.levels]
    assert gallery(*levels, "--output", tmp_path / "site") == 0
    rng = np.random.default_rng(5)
    count, level_set = len(levels) * track.attempts, pack(load_levels(levels))
    actions = rng.integers(0, 6, (count, track.max_steps)).astype(np.uint8)
    which = np.repeat(np.arange(len(levels)), track.attempts)
    rules = (track.frame_skip, track.max_frames, 7)
    whole = replay(level_set, which, np.full(count, track.max_steps), actions.ravel(), *rules)
    steps = -(-whole.ends["frames"].astype(np.int64) // track.frame_skip)
    own = np.concatenate([row[:length] for row, length in zip(actions, steps)])
    run = Run(7, replay(level_set, which, steps, own, *rules), None, {"steps": 1, "seconds": 1})
    submission = Submission(track.name, track.modes[0], next(iter(track.budgets)), "Random", (run,))
    submission.save(tmp_path / "good.zip")
    run.sampled.ends["won"][37] ^= True
    run.sampled.ends["frames"][40] += 1
    run.sampled.ends["mark"][41] ^= 1
    submission.save(tmp_path / "forged.zip")
    browser.open(tmp_path / "site" / "play.html", "#level=jumps-05-tower&mode=check")
    for name, faults in (("good", []), ("forged", [37, 40, 41])):
        browser.drop(tmp_path / f"{name}.zip")
        browser.wait(f"/^{name}.zip: (verified|refused)/.test(verdicts.firstChild?.textContent)")
        lines = browser.evaluate("[...verdicts.children].map((line) => line.textContent)")
        assert lines[0].startswith(f"{name}.zip: " + ("refused: 3 of" if faults else "verified:"))
        assert [int(line.split("episode ")[1].split()[0]) for line in lines[1:]] == faults
    assert browser.evaluate("verdicts.lastChild.getBoundingClientRect().bottom <= innerHeight")  # below the picture
    browser.click("#verdicts button")
    browser.wait("document.body.dataset.mode === 'watch' && page.doc.runs.at(-1).label === 'sampled episode 37'")


def visible(browser, selector, wanted):
    """Return the visible elements for which JavaScript returns true."""
    found = f"[...document.querySelectorAll('{selector}')].filter(e => e.checkVisibility()).filter({wanted})"
    return browser.evaluate(f"{found}.map(e => e.outerHTML)")


def test_pages_fit_a_phone_and_fingers(browser, site):
    browser.resize(390, 844, 2, mobile=True)
    modes = ("watch", "play", "tas", "edit", "check")
    for page, anchor in (("index.html", ""), *(("play.html", f"#level=c&mode={mode}") for mode in modes)):
        browser.open(site / page, anchor)
        assert browser.evaluate("document.documentElement.scrollWidth") == 390, anchor
        small = "e => { const r = (e.closest('label') ?? e).getBoundingClientRect();"
        small += " return Math.min(r.width, r.height) < 24; }"
        assert visible(browser, "button, select, input, summary", small) == [], anchor
    browser.evaluate("document.querySelector('h1').style.width = '500px'")
    assert browser.evaluate("document.documentElement.scrollWidth") > 390


@pytest.mark.parametrize("size", [(390, 844), (844, 390), (640, 360)])
def test_thumbs_do_not_cover_the_level(browser, site, size):
    browser.resize(*size, 2, mobile=True)
    play(browser, site, "c", "play")
    box = "((e) => { const r = e.getBoundingClientRect(); return [r.left, r.top, r.right, r.bottom]; })"
    left, top, right, bottom = browser.evaluate(f"{box}(canvas)")
    assert bottom <= size[1]
    pads = browser.evaluate(f"[...pads.children].map({box})")
    assert all(a < c for a, _, c, _ in pads)
    assert [pad for pad in pads if pad[0] < right and pad[2] > left and pad[1] < bottom and pad[3] > top] == []


def test_the_dark_may_fall_at_any_time(browser, site):
    play(browser, site, "c", "edit")
    browser.prefer(prefers_reduced_motion="reduce", prefers_color_scheme="dark")
    for mode in ("play", "edit") * 3:  # drawn while the pictures of the dark are loaded
        browser.evaluate(f"document.querySelector('[data-mode={mode}]').click()")
    browser.wait("page.scene.theme === 'dark'")
    assert text(browser, "message") == ""


def test_a_high_level_and_its_controls_fit_a_screen(browser, tmp_path):
    assert gallery("jumps/05-tower", "--output", tmp_path / "site") == 0
    browser.open(tmp_path / "site" / "play.html", "#level=jumps-05-tower")
    ends = "['canvas', 'play', 'link'].map(name => document.getElementById(name).getBoundingClientRect().bottom)"
    assert max(browser.evaluate(ends)) <= 800
    browser.evaluate("document.getElementById('canvas').style.maxHeight = 'none'")
    assert max(browser.evaluate(ends)) > 800


def test_controls_have_names(browser, site):
    nameless = "e => !(e.ariaLabel || e.textContent.trim() || e.labels?.[0]?.textContent.trim() || e.closest('button'))"
    pages = [("play.html", f"#level=a&mode={mode}") for mode in ("watch", "play", "tas", "edit", "check")]
    for page, anchor in (("index.html", ""), *pages):
        browser.open(site / page, anchor)
        assert visible(browser, "button, input, select, canvas:not([aria-hidden]), a, textarea", nameless) == []


def test_errors_of_pages_are_noticed(running, tmp_path):
    (tmp_path / "bad.html").write_text("<script>nothing()</script><img src='missing.png'>")
    running.open(tmp_path / "bad.html")
    running.wait("document.readyState === 'complete'")
    assert any("nothing is not defined" in error for error in running.errors)
