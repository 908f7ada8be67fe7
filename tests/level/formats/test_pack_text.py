"""Packs of levels in the game's own text format."""

import subprocess
import sys

import numpy as np
import pytest

from nclone_env.cli.levels import list_levels, validate_levels
from nclone_env.errors import LevelFormatError, UnknownLevelError
from nclone_env.level import LevelRef, load_level, load_levels, resolve, write_map, write_pack
from nclone_env.level.formats import pack_text
from nclone_env.level.formats.pack_text import LAYOUTS, Pack, is_pack
from nclone_env.level.formats.reader import LevelFile

from ...shared import SHARED, needs_shared
from ..level_bases import RECORDS, make_level, make_pack, pack_digits, read_pack, same, swapped_hex

# Every type that a pack can hold, in the order of map bytes; 39 is none of them.
IN_ORDER = [record for record in RECORDS if record[0] != 39]
FULL = make_level(IN_ORDER, title="every kind")
SMALL = make_level([(0, 10, 82, 0, 0), (3, 50, 50, 0, 0), (4, 60, 60, 0, 0)], title="12th # level")
TWIN = make_level([(0, 20, 82, 0, 0), (3, 90, 50, 0, 0), (4, 60, 60, 0, 0)], title="every kind")
PACK = make_pack(FULL, SMALL)


@pytest.fixture
def pack(tmp_path):
    path = tmp_path / "some pack.txt"
    path.write_bytes(PACK)
    return path


@pytest.mark.parametrize(("layout", "is_read"), [({}, True), ({"pack": "xy"}, False)])
def test_a_kind_that_packs_do_not_have_leaves_them_readable(layout, is_read, pack):
    program = (
        "import sys; from nclone_env import game\n"
        f"game.KINDS = (*game.KINDS, game.Kind(29, 'updraft', **{layout}))\n"
        "from nclone_env.level import load_levels\n"
        "print(len(load_levels(sys.argv[1])))"
    )
    done = subprocess.run([sys.executable, "-c", program, str(pack)], capture_output=True, text=True)
    assert (done.stdout == "2\n") == is_read, done.stderr


def random_level(seed: int):
    """Return a level with some records of every kind of a pack."""
    rng = np.random.default_rng(seed)
    records = []
    for kind, layout in LAYOUTS.items():
        count = int(rng.integers(0, 4)) if kind else 1
        rows = [[kind, *rng.integers(0, 256, 2), 0, 0] for _ in range(count)]
        for row in rows:
            row[3] = int(rng.integers(0, 8)) if "o" in layout else 0
            row[4] = int(rng.integers(0, 4)) if "m" in layout else 0
        switches = [[kind + 1, *rng.integers(0, 256, 2), 0, 0] for _ in range(count)] if "X" in layout else []
        if kind == 3:
            records += rows + switches
        else:
            records += [row for pair in zip(rows, switches) for row in pair] if switches else rows
    return make_level(records, title=f"seed {seed}")


@pytest.mark.parametrize("seed", range(20))
def test_the_writer_agrees_with_a_second_one(seed):
    levels = [random_level(seed), FULL, SMALL]
    assert write_pack(levels).lower() == make_pack(*levels).lower()
    assert all(same(read, level) for read, level in zip(read_pack(write_pack(levels)), levels, strict=True))


@pytest.mark.parametrize(
    "records",
    [
        [(0, 10, 82, 0, 0), (2, 50, 50, 0, 0), (1, 60, 60, 0, 0)],
        [(0, 10, 82, 0, 0), (1, 50, 50, 2, 0)],
        [(0, 10, 82, 0, 0), (27, 50, 50, 0, 3)],
    ],
    ids=["order", "orientation", "mode"],
)
def test_levels_that_a_pack_would_change_are_refused(records):
    with pytest.raises(LevelFormatError, match="records: expected records in the order of their types"):
        write_pack([make_level(records)])


@needs_shared
@pytest.mark.parametrize("name", ["official-SI", "official-S"])
def test_the_packs_of_the_game_are_written_as_they_are(name):
    data = (SHARED / "maps" / f"{name}.txt").read_bytes()
    lines = [line.strip().lower() for line in data.split(b"\n") if line.strip()]
    assert write_pack(read_pack(data)).lower().split(b"\n")[:-1] == lines


def test_by_hand():
    """A level written digit by digit: one mine, two exits and a locked door."""
    counts_5, counts_after = "0000", "0000" * 20
    text = "$by hand#" + "00000000" + "10" + "52" + "00" * 964
    text += "0010" + "1020"  # a ninja at (1, 2)
    text += "0010" + "f0ff" + "0000"  # a mine at (15, 255), no gold
    text += "0020" + "10203040" + "50607080"  # exits at (1, 2) and (5, 6), their switches at (3, 4) and (7, 8)
    text += counts_5 + "0010" + "1020604050" + counts_after + "00000000" + "#"
    (raw,) = read_pack(text.encode())
    assert raw.title == "by hand"
    assert raw.tiles[0, :3].tolist() == [1, 37, 0]
    assert raw.records.tolist() == [
        [0, 1, 2, 0, 0],
        [1, 15, 255, 0, 0],
        [3, 1, 2, 0, 0],
        [3, 5, 6, 0, 0],
        [4, 3, 4, 0, 0],
        [4, 7, 8, 0, 0],
        [6, 1, 2, 6, 0],
        [7, 4, 5, 0, 0],
    ]


def test_blank_lines_line_ends_and_case_do_not_matter():
    for data in (
        PACK,
        PACK.replace(b"\n", b"\r\n\r\n"),
        PACK.replace(b"\n", b"\r"),
        PACK.replace(b"\n", b"\t\n\t "),
        b"\n" + PACK.upper().replace(b"EVERY KIND", b"every kind"),
    ):
        assert read_pack(data)[0].digest == FULL.digest
        assert Pack(data).level(1).digest == SMALL.digest


@pytest.mark.parametrize(
    "around",
    [
        b"\xef\xbb\xbf%s",
        b"\xef\xbb\xbf\xef\xbb\xbf# joined\n\xef\xbb\xbf%s",
        b"# from a forum\n%s",
        b"; one\n\n// two\n%s",
        b"\xef\xbb\xbf\r\n#\r\n%s# end",
        b"%s\0\0\0",
        b"%s\r\n\x1a",
    ],
    ids=["byte order mark", "several", "comment", "other comments", "all of them", "zeros", "end of file of DOS"],
)
def test_marks_and_comments_are_no_levels(around):
    data = around.replace(b"%s", PACK)
    assert is_pack(data)
    assert [raw.digest for raw in read_pack(data)] == [FULL.digest, SMALL.digest]


@pytest.mark.parametrize(
    ("title", "read"),
    [
        ("caf\u00e9".encode(), "caf\u00e9"),
        ("caf\u00e9".encode("latin-1"), "caf\u00e9"),
        ("anyone\u2019s equation".encode(), "anyone\u2019s equation"),
        (b"\x01a\tb", "ab"),
        (b"t" * 200, "t" * 128),
        (("\u0416" * 100).encode(), "\u0416" * 64),
        (b"a#b#c", "a#b#c"),
    ],
)
def test_any_title_is_read(title, read):
    """No title makes a level unusable, and the title that is read can be written."""
    pack = Pack(b"$" + title + b"#" + pack_digits(SMALL) + b"#")
    assert pack.titles == (read,)
    assert pack.level(0).title == read
    assert same(read_pack(write_pack([pack.level(0)]))[0], pack.level(0))


OLDER = "0" * 713 + "|5^60,516!11^588,492,168,156!0^36,48"


@pytest.mark.parametrize("text", [f"$a level#author#none#{OLDER}#", OLDER, f"\n$#1#race#{OLDER}#\n", OLDER[:714]])
def test_levels_of_the_older_game_are_named(text):
    with pytest.raises(LevelFormatError, match=r"expected a level of N\+\+.* got a level of N v1.4, an older game"):
        LevelFile(text.encode()).level()


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"every kind", r"line 3: expected \$title#hex#, got b'every kind'"),
        (b"$title#", r"line 3: expected \$title#hex#, got"),
        (b"$title#00", r"line 3: expected \$title#hex#, got"),
        (b"$title#0#", "line 3: expected pairs of hex digits, got"),
        (b"$title#0x#", "line 3: expected pairs of hex digits, got"),
        (b"$title#00 00#", "line 3: expected pairs of hex digits, got blanks"),
        (make_pack(SMALL).strip() * 2, "line 3: expected one level, .* got several in one line; put each"),
        (b"\r".join([make_pack(SMALL).strip()] * 2), "line 3: expected one level, .* got several in one line"),
        (b"$title##", "line 3: expected 4 zero bytes and 966 tiles, got 0 bytes"),
        (b"$t#" + b"10" * 2000 + b"#", "line 3: expected 4 zero bytes and 966 tiles, got 2000 bytes from 01 01 01 01"),
        (
            b"$t#" + pack_digits(SMALL)[:-2] + b"#",
            "line 3: expected 4 zero bytes from byte 1028 to the end, got 00 00 00",
        ),
        (
            b"$t#" + pack_digits(SMALL) + b"00#",
            "line 3: expected 4 zero bytes from byte 1028 to the end, got 00 00 00 00 00",
        ),
        (
            b"$t#" + swapped_hex(bytes(970) + b"\x01\x00") + b"#",
            "line 3: expected 256 ninja records up to byte 1484, got 972",
        ),
        (
            b"$t#" + swapped_hex(bytes(970 + 52 + 4)) + b"#",
            "line 3: expected a ninja record, .* in record 0, got no records",
        ),
    ],
)
def test_malformed_lines_are_named(line, message):
    with pytest.raises(LevelFormatError, match=f"my pack: {message}"):
        read_pack(make_pack(FULL) + b"\n" + line + b"\n", "my pack")


def test_other_malformed_packs():
    with pytest.raises(LevelFormatError, match="level 2: expected a pack with a line for it, got 2 levels"):
        Pack(PACK).level(2)


def lines_one_by_one(data: bytes):
    """Yield number, start and end of each line with a level, found without numpy."""
    first, mark = 0, b"\n" if b"\n" in data else b"\r"
    for number, line in enumerate(data.split(mark), start=1):
        text = line[: pack_text._LONGEST].lstrip(b" \t\v\f\r\0\x1a\xef\xbb\xbf")
        if text and not text.startswith((b"#", b";", b"//")):
            yield number, first, first + len(line)
        first += len(line) + 1


@pytest.mark.parametrize("length", [16, 1 << 20])
@pytest.mark.parametrize("mark", [b"\n", b"\r", b"\r\n"])
def test_lines_are_those_found_one_by_one(monkeypatch, length, mark):
    """However long the lines and the parts that are looked at."""
    monkeypatch.setattr(pack_text, "_LONGEST", length)
    rng = np.random.default_rng(len(mark) + length)
    for _ in range(1000):
        data = rng.choice(list(b"\n\n\n \t\0#;//$$ab\xef\x1a"), rng.integers(0, 120)).astype(np.uint8).tobytes()
        data = data.replace(b"\n", mark)
        found = [tuple(line) for lines in pack_text._parts(data) for line in lines.tolist()]
        assert found == list(lines_one_by_one(data))


@pytest.mark.parametrize("line", [b"$\n", b"$a#00#\n", b" x\n"])
def test_files_of_lines_too_short_for_a_level_are_refused(tmp_path, line):
    """Those of a few megabytes of memory could make gigabytes of references."""
    path = tmp_path / "many"
    path.write_bytes(make_pack(SMALL) + line * 10_000)
    assert len(resolve(path)) == 10_001
    path.write_bytes(make_pack(SMALL) + line * 10_001)
    (ref,) = resolve(path)
    with pytest.raises(LevelFormatError, match=r"many: line 10002: .* got more than 10,000 lines that are too short"):
        ref.load()
    path.write_bytes(make_pack(SMALL) + (b"#" + line) * 10_001)
    assert len(resolve(path)) == 1


def test_levels_of_megabytes_are_refused_unparsed():
    for line in (b"$a#" + b"0" * (1 << 20) + b"#", b"$" + b"a" * (1 << 20) + b"#00#"):
        pack = Pack(line + b"\n" + PACK)
        assert len(pack.titles) == 3
        assert pack.level(1).digest == FULL.digest
        with pytest.raises(
            LevelFormatError, match=r"line 1: expected at most 1048576 bytes for a level, got 10485\d\d"
        ):
            pack.level(0)


def test_every_truncated_prefix_is_refused():
    line = make_pack(SMALL).rstrip()
    for length in range(1, len(line)):
        with pytest.raises(LevelFormatError):
            read_pack(line[:length])


def test_a_level_is_parsed_once_while_it_is_in_use(tmp_path):
    path, other = tmp_path / "a.txt", tmp_path / "b.txt"
    for each in (path, other):
        each.write_bytes(PACK)
    held = [level.raw for level in load_levels(path)]
    assert [level.raw for level in load_levels(path)] == held  # raw levels are equal if they are one object
    assert load_level(f"{other}#0").raw not in held, "its file is named in messages"
    path.write_bytes(make_pack(SMALL, FULL))
    assert [same(level.raw, raw) for level, raw in zip(load_levels(path), reversed(held))] == [True, True]
    keys = set(pack_text._in_use)
    del held
    assert set(pack_text._in_use) < keys


def test_a_pack_is_a_set(pack):
    pack.write_bytes(make_pack(TWIN, SMALL))
    refs = resolve(pack)
    assert refs == resolve(str(pack)) == (LevelRef(pack, 0, "some pack.txt#0"), LevelRef(pack, 1, "some pack.txt#1"))
    levels = load_levels([str(pack)])
    assert [level.name for level in levels] == ["some pack.txt#0", "some pack.txt#1"]
    assert [level.raw.title for level in levels] == ["every kind", "12th # level"]
    assert levels[1].raw.source == f"{pack}#1"


@pytest.mark.parametrize("reference", ["#1", "#01", "#12th # level"])
def test_one_level_of_a_pack(pack, reference):
    name = f"{pack}{reference}"
    assert resolve(name) == (LevelRef(pack, 1, "some pack.txt#1"),)
    assert load_level(name).raw.digest == SMALL.digest


def test_a_file_with_such_a_name_wins(pack):
    path = pack.with_name("some pack.txt#1")
    path.write_bytes(write_map(TWIN))
    assert load_level(str(path)).raw.digest == TWIN.digest


def test_names_that_are_no_level_of_the_pack(pack, tmp_path):
    for name in (f"{pack}#no such title", f"{tmp_path}/other.txt#0", f"{pack}#-1", f"{pack}#"):
        with pytest.raises(UnknownLevelError, match="expected a built-in set or level, a file or a folder"):
            resolve(name)
    pack.write_bytes(make_pack(FULL, SMALL, TWIN))
    with pytest.raises(UnknownLevelError, match=r"expected the title of one level, got .*: numbers 0, 2"):
        resolve(f"{pack}#every kind")


@pytest.fixture
def ten(pack):
    """A pack of ten levels; two titles read like ranges."""
    titles = ["0-1", "2,3", *map(str, range(2, 10))]
    pack.write_bytes(make_pack(*(make_level([(0, 10 + n, 82, 0, 0)], title=title) for n, title in enumerate(titles))))
    return pack


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        ("0-9", range(10)),
        ("3-3", [3]),
        ("03-005", [3, 4, 5]),
        ("7,0-2,9", [7, 0, 1, 2, 9]),
        ("0-1", [0, 1]),  # also the title of level 0
        ("2,3", [2, 3]),  # also the title of level 1
        ("1,1", [1, 1]),
    ],
)
def test_ranges_of_a_pack(ten, numbers, expected):
    refs = resolve(f"{ten}#{numbers}")
    assert refs == tuple(LevelRef(ten, number, f"some pack.txt#{number}") for number in expected)
    assert [level.spawn[0] for level in load_levels([f"{ten}#{numbers}"])] == [6 * (10 + n) for n in expected]


@pytest.mark.parametrize(
    ("numbers", "message"),
    [
        ("5-2", r"ranges with the smaller number first, got '5-2' in '.*some pack\.txt#5-2'; write 2-5"),
        ("0-10", r"numbers from 0 to 9 for a pack of 10 levels, got '0-10' in .*; write 0-9"),
        ("1,8-99,2", r"numbers from 0 to 9 for a pack of 10 levels, got '8-99' in .*; write 8-9"),
        ("10", r"numbers from 0 to 9 for a pack of 10 levels, got '10' in .*; numbers count from 0"),
        ("0-999999999", r".*, got '0-999999999'"),
    ],
)
def test_ranges_outside_the_pack(ten, numbers, message):
    with pytest.raises(UnknownLevelError, match=f"level: expected {message}"):
        resolve(f"{ten}#{numbers}")


@pytest.mark.parametrize("numbers", ["1-", "-1", "1,", ",1", "1--2", "1-2-3", "0 - 3", "1;2", "0-1234567890"])
def test_what_reads_neither_as_numbers_nor_as_a_title(ten, numbers):
    with pytest.raises(UnknownLevelError, match="expected a built-in set or level, a file or a folder"):
        resolve(f"{ten}#{numbers}")


def test_ranges_are_listed_and_validated(ten, capsys):
    assert list_levels((f"{ten}#2-3", "first-steps")) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:3] == [f"{ten}#2-3 (2 levels)", f"  {'some pack.txt#2':<32} 2", f"  {'some pack.txt#3':<32} 3"]
    assert lines[3].startswith("first-steps (")
    validate_levels((f"{ten}#0-4",))
    assert "5 levels" in capsys.readouterr().out


def test_one_level_is_wanted(pack):
    with pytest.raises(UnknownLevelError, match=r"which contains some pack\.txt#0, some pack\.txt#1"):
        load_level(pack)
    with pytest.raises(LevelFormatError, match=r"expected one level, such as .*some pack\.txt#0, got a pack of 2"):
        LevelFile.open(pack).level()
    assert LevelFile(make_pack(SMALL)).level().digest == SMALL.digest


def test_validate_names_every_level(pack, capsys):
    pack.write_bytes(PACK + b"$broken#00#\n" + make_pack(make_level([(0, 10, 82, 0, 0)])))
    assert validate_levels((str(pack),)) == 1
    out = capsys.readouterr().out
    assert f"error: {pack}: line 3: expected 4 zero bytes" in out
    assert f"error: {pack}#3: no exit" in out
    assert out.endswith("4 levels, 2 with errors\n")
    assert validate_levels((f"{pack}#1",)) == 0
