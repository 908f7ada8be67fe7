"""The command ``nclone-env gallery``: what it finds, refuses, escapes and writes."""

import base64
import gzip
import json
import re
import sys
import zlib
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest

from nclone_env.cli.app import main
from nclone_env.errors import ConfigError, RecordingError
from nclone_env.gallery import site as site_module
from nclone_env.gallery.entries import collect, facts_of, page_names, run_of, solution_of
from nclone_env.gallery.policies import page_policies
from nclone_env.gallery.site import escaped, script_data
from nclone_env.jobs import Showing
from nclone_env.level import build_level, build_room, hall_tiles, load_level, write_map, write_pack
from nclone_env.render.picture import used_area_of, zoom_of
from nclone_env.replay.recording import Recording

from ..level.level_bases import make_attract
from ..shared import contents
from .sites import DEADLY, RIGHT, WINNABLE, gallery, level_file, recording_file


class Page(HTMLParser):
    """The elements of a page with their attributes, and the text of all ``script`` elements."""

    def __init__(self, path):
        super().__init__()
        self.elements, self.scripts, self._tag = [], [], ""
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        self._tag = tag

    def handle_data(self, data):
        if self._tag == "script" and data.strip():
            self.scripts.append(data)

    def named(self, tag):
        return [attributes for name, attributes in self.elements if name == tag]


def data_of(path):
    """Return the data in a script: of a level, or of the list of levels."""
    before = "= " if path.parent.name == "levels" else "y, "
    return json.loads(path.read_text(encoding="utf-8").removesuffix(";\n").partition(before)[2].removesuffix(")"))


def test_built_in_levels_come_with_their_solutions(folder, capsys):
    assert gallery("first-steps", "--output", "site") == 0
    assert capsys.readouterr().out == "wrote 6 levels and 6 runs; open site/index.html\n"
    cards = Page(folder / "site" / "index.html").named("li")
    assert [card["data-title"] for card in cards][:2] == ["Walk", "One step up"]
    data = data_of(folder / "site" / "levels" / "first-steps-01-walk.js")
    assert [run["label"] for run in data["runs"]] == ["known solution"]
    assert data["runs"][0]["frames"] == int(cards[0]["data-frames"])
    site = folder / "site"
    files = [path for path in site.rglob("*") if path.is_file()]
    assert sorted(path.stem for path in files if path.name.startswith("policy-")) == [
        f"policy-{policy.name}" for policy in page_policies()
    ]
    assert sum(len(gzip.compress(path.read_bytes())) for path in files) < 1_000_000, "a gallery is small"


def test_every_link_of_the_pages_is_a_file(folder):
    level_file(folder / "a#1 ä.map", WINNABLE)
    recording_file(folder / "b.replay")
    assert gallery("a#1 ä.map", "jumps", "--recordings", "b.replay", "--output", "site") == 0
    levels = [name for name, _ in data_of(folder / "site" / "levels.js")["levels"]]
    assert len(levels) == 6
    for path in (folder / "site" / "index.html", folder / "site" / "play.html"):
        for tag, attributes in Page(path).elements:
            for name in {"href", "src"} & set(attributes):
                file, _, level = attributes[name].partition("#level=")
                assert (path.parent / file).is_file(), (path, tag)
                assert not level or level in levels
    for name in levels:
        assert {path.suffix for path in (folder / "site" / "levels").glob(f"{name}.*")} == {".js"}
    for path in (folder / "site").rglob("*"):
        assert re.fullmatch(r"[a-z0-9-]+(\.[a-z]+)?", path.name)


def test_what_level_files_say_is_inert(folder):
    evil = '"><script>alert(1)</script>'
    level_file(folder / "<img src=x onerror=alert(1)>.map", WINNABLE, title=evil, author="</script>&<b>")
    recording_file(folder / "<script>.replay", replace(WINNABLE, raw=replace(WINNABLE.raw, title=evil)))
    assert gallery("<img src=x onerror=alert(1)>.map", "--recordings", "<script>.replay", "--title", evil) == 0
    pages = list((folder / "gallery").rglob("*.html"))
    assert len(pages) == 2
    for path in pages:
        text = path.read_text(encoding="utf-8")
        page = Page(path)
        assert "alert(1)</script>" not in text
        assert "<b>" not in text
        assert not [name for _, attributes in page.elements for name in attributes if name.startswith("on")]
        assert all(set(script) <= {"src", "defer"} for script in page.named("script"))
    assert Page(folder / "gallery" / "index.html").named("li")[0]["data-title"] == evil
    script = next((folder / "gallery" / "levels").glob("*.js"))
    assert "<" not in script.read_text()
    assert data_of(script)["runs"][0]["label"] == "<script>"
    assert data_of(folder / "gallery" / "levels.js")["levels"][0][1] == evil


def test_escapes():
    assert escaped("a<b>&\"'\x00\u202e\udcff") == "a&lt;b&gt;&amp;&quot;&#x27;   "
    assert script_data(["</script><!--"]) == '["\\u003c/script>\\u003c!--"]'


def test_the_best_run_comes_first_and_copies_are_left_out(folder):
    level_file(folder / "a.map", WINNABLE)
    recording_file(folder / "slow.replay", inputs=bytes(20) + RIGHT)
    recording_file(folder / "fast.replay")
    recording_file(folder / "gave-up.replay", inputs=bytes(5))
    recording_file(folder / "zcopy.replay")
    assert gallery("a.map", "--recordings", "zcopy.replay", "slow.replay", "gave-up.replay", "fast.replay") == 0
    data = data_of(folder / "gallery" / "levels" / "a.js")
    assert [run["label"] for run in data["runs"]] == ["zcopy", "slow", "gave-up"]


def test_a_wrong_recording_is_named_and_left_out(folder, capsys):
    level_file(folder / "a.map", DEADLY)
    wrong = Recording.of(DEADLY, RIGHT)
    replace(wrong, trajectory_hash="0" * 16).save(folder / "wrong.replay")
    (folder / "torn.replay").write_bytes((folder / "wrong.replay").read_bytes()[:-3])
    recording_file(folder / "right.replay", DEADLY)
    recording_file(folder / "stranger.replay", WINNABLE)
    (folder / "text.replay").write_text("hello")
    names = ("wrong.replay", "torn.replay", "right.replay", "stranger.replay", "text.replay")
    assert gallery("a.map", "--recordings", *names) == 1
    said = capsys.readouterr()
    assert [line.split(":")[1].strip() for line in said.err.splitlines()] == [
        "wrong.replay", "torn.replay", "text.replay", "stranger",
    ]  # fmt: skip
    assert "wrong.replay: replay: expected a run that the simulator reproduces, got expected trajectory" in said.err
    assert said.out == "wrote 1 level and 1 run; open gallery/index.html\n"
    assert [run["label"] for run in data_of(folder / "gallery" / "levels" / "a.js")["runs"]] == ["right"]


def test_attract_files_are_checked_as_well(folder, capsys):
    death = run_of("", DEADLY, RIGHT).frames
    (folder / "runs").mkdir()
    (folder / "runs" / "12").write_bytes(make_attract(DEADLY.raw, RIGHT[:death]))
    (folder / "runs" / "13").write_bytes(make_attract(DEADLY.raw, RIGHT[: death - 1]))
    (folder / "runs" / "notes.txt").write_text("not a recording")
    assert gallery("--recordings", "runs") == 1
    said = capsys.readouterr()
    assert said.out == "wrote 1 level and 1 run; open gallery/index.html\n"
    assert said.err.startswith(
        "left out: runs/13: replay: expected a run that the simulator reproduces, got expected death"
    )
    assert (folder / "gallery" / "levels" / "deadly.js").is_file()
    assert gallery("jumps/01-stairs", "--recordings", ".", "--force") == 1
    assert "got none in it; name the folders in it, as ./* does in a shell" in capsys.readouterr().err


def test_a_malformed_level_is_named_and_left_out(folder, capsys):
    (folder / "levels").mkdir()
    level_file(folder / "levels" / "a.map", DEADLY)
    (folder / "levels" / "b.map").write_bytes(b"\0" * 99)
    assert gallery("levels") == 1
    assert capsys.readouterr().err.startswith("left out: levels/b.map: offset ")


def generated_pack(folder):
    """Write a pack of two levels with a recording of each; return the levels."""
    pair = [
        replace(level, raw=replace(level.raw, title=title)) for level, title in ((WINNABLE, "one"), (DEADLY, "two"))
    ]
    (folder / "made.txt").write_bytes(write_pack([level.raw for level in pair]))
    (folder / "made-recordings").mkdir()
    for number, level in enumerate(pair):
        recording_file(folder / "made-recordings" / f"00{number}-{level.raw.title}.replay", level)
    return pair


def test_a_generated_pack_brings_its_recordings_and_difficulties(folder):
    pair = generated_pack(folder)
    (folder / "made-recordings" / "001-two.replay").unlink()
    rows = [{"digest": pair[0].raw.digest, "difficulty": 37, "family": "rooms"}, {"digest": "?"}]
    (folder / "made.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    assert gallery("made.txt") == 0
    cards = Page(folder / "gallery" / "index.html").named("li")
    assert [(card["data-difficulty"], card["data-runs"]) for card in cards] == [("37", "1"), ("", "0")]
    facts = data_of(folder / "gallery" / "levels" / "made-0.js")["facts"]
    assert ["Family", "rooms"] in facts
    assert ["Difficulty", "37 of 100"] in facts
    (folder / "made.jsonl").write_text("[1]\n")
    assert gallery("made.txt", "--force") == 1


@pytest.mark.parametrize("names", [("made.txt#0",), ("made.txt#0", "jumps")])
def test_recordings_of_levels_that_are_not_selected_are_not_even_read(folder, capsys, names):
    generated_pack(folder)
    (folder / "made-recordings" / "001-two.replay").write_bytes(b"malformed")
    assert gallery(*names) == 0
    assert capsys.readouterr().err == ""
    assert [run["label"] for run in data_of(folder / "gallery" / "levels" / "made-0.js")["runs"]] == ["000-one"]
    assert gallery("made.txt#0", "made.txt#1", "--force") == 1
    assert capsys.readouterr().err.startswith("left out: made-recordings/001-two.replay: ")


def test_only_named_recordings_of_other_levels_are_reported(folder, capsys):
    generated_pack(folder)
    (folder / "made-recordings" / "001-two.replay").replace(folder / "made-recordings" / "000-two.replay")
    assert gallery("made.txt#0") == 0
    assert capsys.readouterr().err == ""
    assert gallery("made.txt#0", "--recordings", "made-recordings", "--force") == 1
    assert capsys.readouterr().err == (
        "left out: 000-two: level: expected one of the levels of the gallery, got 'two'\n"
    )


def test_the_target_of_a_link_is_replaced_and_the_link_stays(folder):
    level_file(folder / "a.map", WINNABLE)
    level_file(folder / "b.map", DEADLY)
    (folder / "web").mkdir()
    (folder / "link").symlink_to("web/site")
    assert gallery("a.map", "--output", "link") == 0
    assert gallery("b.map", "--output", "link", "--force") == 0
    assert (folder / "link").readlink().as_posix() == "web/site"
    assert [path.name for path in (folder / "web" / "site" / "levels").glob("*.js")] == ["b.js"]
    assert {path.name for path in folder.iterdir()} == {"a.map", "b.map", "web", "link"}
    assert [path.name for path in (folder / "web").iterdir()] == ["site"]


def test_a_link_to_itself_is_refused(folder, capsys):
    level_file(folder / "a.map", WINNABLE)
    (folder / "link").symlink_to("link")
    assert gallery("a.map", "--output", "link", "--force") == 2
    assert "output: expected a new folder or a gallery, got link, a symbolic link to itself" in capsys.readouterr().err
    assert {path.name for path in folder.iterdir()} == {"a.map", "link"}


def screen(text):
    """Return the lines that a terminal shows in the end; what is written after other text of a line follows it."""
    return [line.rpartition("\r\x1b[K")[2] for line in text.split("\n")]


def test_on_a_terminal_messages_take_the_place_of_the_line_of_progress(folder, capsys, monkeypatch):
    level_file(folder / "a.map", DEADLY)
    level_file(folder / "b.map", WINNABLE)
    (folder / "torn.replay").write_bytes(b"x")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert gallery("a.map", "b.map", "--recordings", "torn.replay") == 1
    said = capsys.readouterr().err
    assert "2/2 levels" in said
    assert [line.split(":")[0] for line in screen(said)] == ["left out", ""]
    assert screen("\r\x1b[K1/2 levelsleft out: a\n") == ["1/2 levelsleft out: a", ""]


def test_an_interruption_removes_the_line_of_progress(folder, capsys, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    level_file(folder / "a.map", DEADLY)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setattr(site_module, "index_page", interrupt)
    assert gallery("a.map") == 130
    said = capsys.readouterr().err
    assert "1/1 levels" in said
    assert screen(said) == ["nclone-env: interrupted", ""]


def test_an_existing_gallery_is_replaced_only_by_force(folder, capsys):
    level_file(folder / "a.map", WINNABLE)
    level_file(folder / "b.map", DEADLY)
    assert gallery("a.map", "--output", "site") == 0
    assert gallery("b.map", "--output", "site") == 2
    assert capsys.readouterr().err == "nclone-env: output: site is a gallery already; --force replaces it\n"
    assert gallery("b.map", "--output", "site", "--force") == 0
    assert not (folder / "site" / "levels" / "a.js").exists()
    assert {path.name for path in folder.iterdir()} == {"a.map", "b.map", "site"}


def test_other_files_are_never_replaced(folder, capsys):
    (folder / "site").mkdir()
    (folder / "site" / "index.html").write_text("<title>mine</title>")
    assert gallery("first-steps", "--output", "site", "--force") == 2
    assert "expected a new folder or a gallery, got site with other files" in capsys.readouterr().err
    assert gallery("first-steps", "--output", "site/index.html", "--force") == 2
    assert (folder / "site" / "index.html").read_text() == "<title>mine</title>"


def test_files_next_to_those_of_a_gallery_are_kept(folder, capsys):
    level_file(folder / "a.map", WINNABLE)
    assert gallery("a.map", "--output", "site") == 0
    (folder / "site" / "CNAME").write_text("levels.test")
    (folder / "site" / ".git").mkdir()
    assert gallery("a.map", "--output", "site", "--force") == 2
    assert "expected a gallery alone, got site with '.git' and 1 more; move that" in capsys.readouterr().err
    assert (folder / "site" / "CNAME").read_text() == "levels.test"
    (folder / "site" / ".git").rmdir()
    (folder / "site" / "CNAME").unlink()
    assert gallery("a.map", "--output", "site", "--force") == 0


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError(28, "No space left on device")])
def test_an_interruption_leaves_the_old_gallery(folder, monkeypatch, error):
    level_file(folder / "a.map", WINNABLE)
    level_file(folder / "b.map", DEADLY)
    assert gallery("a.map") == 0
    before = contents(folder / "gallery")

    def fail(*_):
        raise error

    monkeypatch.setattr(site_module, "index_page", fail)
    assert gallery("b.map", "--force") == (130 if error is KeyboardInterrupt else 2)
    assert contents(folder / "gallery") == before
    assert {path.name for path in folder.iterdir()} == {"a.map", "b.map", "gallery"}


def test_a_full_disk_names_what_is_written(folder, capsys):
    resource = pytest.importorskip("resource")
    level_file(folder / "a.map", WINNABLE)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1024, before[1]))
    try:
        assert gallery("a.map") == 2
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert capsys.readouterr().err == "nclone-env: output: gallery cannot be written: File too large\n"


@pytest.mark.parametrize("name", ["nosuch", "x" * 300, "y/" * 3000], ids=["short", "long name", "long path"])
def test_recordings_that_do_not_exist_are_named(folder, name):
    """Also to Python, and where the system takes no such name at all."""
    for call in (lambda: Showing((), (name,)).numbers(None), lambda: collect("jumps", name, [].append)):
        with pytest.raises(ConfigError, match=r"recordings: expected files or folders, got .{8,210}, which does not"):
            call()


def test_a_run_has_any_length(folder):
    level_file(folder / "a.map", DEADLY)
    recording_file(folder / "long.replay", DEADLY, bytes(100_000))
    assert gallery("a.map", "--recordings", "long.replay") == 0
    script = folder / "gallery" / "levels" / "a.js"
    (run,) = data_of(script)["runs"]
    assert zlib.decompress(base64.b64decode(run["inputs"])) == bytes(100_000)
    assert script.stat().st_size < 2000


def test_a_level_that_no_file_can_hold_is_left_out(folder, capsys):
    level_file(folder / "a.map", DEADLY)
    good = write_map(build_room("exit 60 58", "exit_switch 48 58").raw)
    bad = good.replace(bytes([4, 48, 58, 0, 0]), bytes([1, 48, 58, 0, 0]))
    (folder / "b.map").write_bytes(bad)
    assert gallery("a.map", "b.map") == 1
    assert "left out: b.map: record 2 at offset 1240: expected exit_switch" in capsys.readouterr().err


def test_a_solution_that_does_not_complete_its_level():
    with pytest.raises(
        RecordingError, match="known solution: expected inputs that complete the level, got a ninja dead"
    ):
        solution_of(DEADLY, RIGHT)


def test_names_of_pages():
    names = [
        "jumps/01-stairs",
        "Pack.txt#12",
        "pack.txt#12",
        "a b",
        "a-b",
        "a-b-2",
        "..",
        "#",
        "é" * 5,
        "x" * 300,
        "con",
    ]
    pages = page_names(names)
    assert pages[:6] == ["jumps-01-stairs", "pack-12", "pack-12-2", "a-b", "a-b-2", "a-b-2-2"]
    assert len(set(pages)) == len(names)
    assert all(re.fullmatch(r"[a-z0-9][a-z0-9-]{0,63}", page) for page in pages)


def test_facts():
    facts = facts_of(build_level("gold 20 20", "gold 24 20", "mine 30 20", tiles=hall_tiles((5, 14), (3, 7))).raw)
    assert (facts.columns, facts.rows, facts.gold, facts.entities) == (10, 5, 2, 3)
    assert facts.kinds == {"gold": 2, "mine": 1}
    assert facts_of(DEADLY.raw, {"difficulty": "<b>", "family": 3}).difficulty is None


@pytest.mark.parametrize(
    ("level", "zoom"),
    [
        (build_level(tiles=hall_tiles((20, 24), (10, 12)), spawn=(84, 44)), 2),
        (load_level("first-steps/01-walk"), 1056 / 672),
        (build_level(tiles=np.zeros((23, 42), np.uint8)), 1),
    ],
)
def test_pages_show_what_a_level_uses(level, zoom):
    facts = facts_of(level.raw)
    assert facts.area == used_area_of(level.raw)
    assert facts.zoom == zoom_of(facts.area) == zoom
    width, height = facts.size()
    assert max(width / 1056, height / 600) <= 1


def test_levels_are_found_once_for_recordings_alone(folder):
    paths = [recording_file(folder / f"{name}.replay", inputs=RIGHT[:length]) for name, length in (("a", 5), ("b", 6))]
    faults = []
    entries = collect((), paths, faults.append)
    assert (faults, [entry.page for entry in entries]) == ([], ["winnable"])
    assert [run.label for run in entries[0].runs] == ["a", "b"]


def test_shards_are_merged_to_the_site_of_one_process(folder, capsys):
    level_file(folder / "a.map", WINNABLE)
    recording_file(folder / "b.replay")
    words = ("a.map", "first-steps", "--recordings", "b.replay", "--title", "All")
    assert gallery(*words, "--output", "one") == 0
    for number in (2, 1, 2):
        assert gallery(*words, "--output", "parts", "--shard", f"{number}/2") == 0
    assert main(["merge", "parts", "--output", "joined"]) == 0
    assert contents(folder / "joined") == contents(folder / "one")
    assert len(contents(folder / "one")) >= 30
    (folder / "other").mkdir()
    (folder / "other" / "mine").touch()
    assert main(["merge", "parts", "--output", "other", "--force"]) == 2
    assert "output: expected a new folder or a gallery, got other" in capsys.readouterr().err
    level_file(folder / "a.map", DEADLY)
    assert main(["merge", "parts", "--output", "again"]) == 2
    assert (
        "folders: expected the levels and the version of the package that its shards had, got others"
        in capsys.readouterr().err
    )
