"""The scripts of a page, in Node: files in both directions, digests, inputs as text, verdicts on recordings."""

import base64
import dataclasses
import datetime
import hashlib
import io
import json
import zlib
from pathlib import Path

import numpy as np
import pytest
import torch

from nclone_env.gallery import site
from nclone_env.gallery.policies import page_policies
from nclone_env.level.build import everything, moving
from nclone_env.level.formats.attract import read_attract
from nclone_env.level.formats.map_bytes import read_map, write_map
from nclone_env.level.formats.pack_text import write_pack
from nclone_env.level.formats.text import format_text
from nclone_env.level.load import load_levels
from nclone_env.level.solutions import format_inputs, known_solutions, parse_inputs
from nclone_env.replay.recording import Recording, read_recording, write_recording
from nclone_env.replay.verification import verify
from nclone_env.sim.session import Session
from nclone_env.train.policies.checkpoint import load_checkpoint

from ..level.level_bases import make_attract
from .scripts import NODE, as_text, in_node
from .sites import DEADLY, RIGHT, WINNABLE

pytestmark = pytest.mark.skipif(NODE is None, reason="there is no node")
LEVELS = [everything(), moving((70, 44), "other"), WINNABLE, DEADLY, *load_levels("hazards"), *load_levels("motifs-5")]
INPUTS = bytes([2] * 30 + [3] * 20 + [4] * 40 + [6, 7, 0])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("scripts")


def test_digests_are_those_of_the_libraries(folder):
    lengths = (0, 1, 3, 55, 56, 63, 64, 65, 119, 120, 127, 128, 129, 255, 256, 257, 1000)
    data = [np.random.default_rng(length).bytes(length) for length in lengths]
    code = """
    const { hex, sha256, blake2b, crc32 } = files;
    return data.map(bytes).map((each) => [hex(sha256(each)), hex(blake2b(each)), crc32(each)]);
    """
    assert in_node(folder, code, [as_text(each) for each in data]) == [
        [hashlib.sha256(each).hexdigest(), hashlib.blake2b(each, digest_size=8).hexdigest(), zlib.crc32(each)]
        for each in data
    ]


def test_levels_are_read_and_written_as_by_the_package(folder):
    raws = [level.raw for level in LEVELS]
    maps, packs, texts = map(write_map, raws), (write_pack([raw]) for raw in raws), map(format_text, raws)
    code = """
    const { writeMap, writePack, writeLevelText, hex, digest } = files, kinds = [];
    const level = (l) => [text(writeMap(l)), text(writePack([l])), writeLevelText(l), hex(digest(l))];
    for (const each of data.flat()) {
      const found = await files.open(bytes(each));
      kinds.push([found.kind, found.levels.map(level)]);
    }
    return kinds;
    """
    triples = list(zip(maps, packs, (each.encode() for each in texts)))
    found = in_node(folder, code, [[as_text(each) for each in triple] for triple in triples])
    assert [kind for kind, _ in found] == ["map", "pack", "text"] * len(LEVELS)
    for place, (_, [(as_map, as_pack, as_toml, digest)]) in enumerate(found):
        raw, (map_bytes, pack_bytes, toml_bytes) = raws[place // 3], triples[place // 3]
        assert digest == raw.digest
        assert as_pack == as_text(pack_bytes)
        if place % 3 != 1:  # a pack has no author
            assert (as_map, as_toml.encode()) == (as_text(map_bytes), toml_bytes)


def test_names_are_those_of_the_package(folder):
    """Titles in UTF-8, in Latin-1 where that is too long, without control characters, and cut."""
    titles = ["Café 忍者の道", "é" * 100, 'a "quoted" \\ title', "x" * 300, "a\u202eb\x01c"]
    code = "return data.map((title) => text(files.writeMap({ ...files.readMap(bytes(globalThis.base)), title })))"
    base = as_text(write_map(WINNABLE.raw))
    found = in_node(folder, f"globalThis.base = '{base}'; {code}", titles)
    read = [read_map(base64.b64decode(each)).title for each in found]
    assert read == [*titles[:3], "x" * 128, "abc"]


def test_a_recording_of_a_page_is_accepted_by_the_package(folder):
    levels = [LEVELS[0], WINNABLE, DEADLY]
    code = """
    const simulator = await load(), page = { hashOf };
    function hashOf(level, inputs) {
      const run = level.run(inputs), states = [];
      for (let frame = 1; frame <= inputs.length; frame++) { run.at(frame); states.push(run.ninja); }
      return files.trajectoryHash(states, inputs.length);
    }
    const made = [];
    for (const [map, codes] of data) {
      const level = files.readMap(bytes(map)), inputs = bytes(codes), sim = simulator.level(files.writeMap(level));
      const replay = await files.writeReplay(level, inputs, hashOf(sim, inputs), { level: "x" });
      const back = await files.open(replay);
      const forged = inputs.slice();
      forged[4] ^= 2;
      const run = sim.run(inputs);
      run.at(inputs.length);
      const verdicts = [verdictOf(back, page, sim), verdictOf({ ...back, inputs: forged }, page, sim).agrees];
      made.push([text(replay), ...verdicts, text(files.writeAttract(level, inputs)), run.hash().toString()]);
    }
    return made;
    """
    asked = [[as_text(write_map(level.raw)), as_text(INPUTS)] for level in levels]
    decode = base64.b64decode
    for level, (replay, verdict, forged, attract, world) in zip(levels, in_node(folder, code, asked)):
        file = read_recording(decode(replay))
        assert (file.level.digest, file.inputs.tobytes(), file.settings) == (level.raw.digest, INPUTS, {"level": "x"})
        assert file.verify().agrees
        assert verdict == {"agrees": True, "reason": "every frame matches"}
        assert not forged
        game = read_attract(decode(attract))
        assert (game.level.digest, game.inputs.tobytes()) == (level.raw.digest, INPUTS)
        session = Session(level)
        session.play(INPUTS)
        assert int(world) == session.hash()


def test_recordings_of_the_package_are_read(folder):
    recording = Recording.of(WINNABLE, INPUTS, {"level": "a name"})
    good = write_recording(recording)
    damaged = {
        "header": good[:30] + b"\1" + good[31:],
        "contents": good[:-3] + b"\1" + good[-2:],
        "cut": good[:-1],
        "short": good[:50],
    }
    code = """
    const found = await files.open(bytes(data[0])), faults = [];
    for (const each of data.slice(1)) await files.open(bytes(each)).catch((error) => faults.push(error.message));
    return [found.kind, text(found.inputs), found.hash, found.name, faults];
    """
    kind, inputs, run_hash, name, faults = in_node(folder, code, list(map(as_text, (good, *damaged.values()))))
    assert (kind, inputs, run_hash, name) == ("replay", as_text(INPUTS), recording.trajectory_hash, "a name")
    places = ["offset 72", "offset 68", f"offset {len(good) - 1}", "offset 50"]
    assert [fault.split(":")[0] for fault in faults] == places


def test_verdicts_on_attract_files_are_those_of_the_package(folder):
    death = int((Session(DEADLY).record(RIGHT).ninjas["state"] == 6).argmax()) + 1
    runs = [RIGHT[:death], RIGHT[: death - 1], RIGHT, RIGHT[:10] + b"\x08", RIGHT[:10] + b"\x08\0\0", RIGHT + b"\x08"]
    files = [make_attract(DEADLY.raw, run) for run in runs]
    code = """
    const simulator = await load(), verdicts = [];
    for (const each of data) {
      const found = await files.open(bytes(each));
      verdicts.push([found.kind, verdictOf(found, {}, simulator.level(files.writeMap(found.levels[0])))]);
    }
    return verdicts;
    """
    expected = [verify(read_attract(each)) for each in files]
    assert {each.agrees for each in expected} == {True, False}
    assert in_node(folder, code, list(map(as_text, files))) == [
        ["attract", {"agrees": each.agrees, "reason": each.reason}] for each in expected
    ]


def test_inputs_as_text_are_those_of_the_package(folder):
    known = [bytes(inputs) for inputs in list(known_solutions().values())[:20]]
    code = "return data.map(bytes).map(files.writeInputs).map((words) => [words, text(files.readInputs(words))])"
    runs = [*known, INPUTS]
    for inputs, (words, back) in zip(runs, in_node(folder, code, list(map(as_text, runs)))):
        assert back == as_text(inputs)
        if inputs != INPUTS:
            assert parse_inputs(words) == inputs == parse_inputs(format_inputs(inputs))
    wrong = "try { files.readInputs('3R x'); } catch (error) { return error.message; }"
    assert in_node(folder, wrong) == "word 2: expected a count and keys of . L R J, such as 24RJ, got x"


OTHERS = [
    (b"", "file: expected a level, a recording or a submission, got 0 bytes of another kind"),
    (b"\0" * 500, "file: expected a level, a recording or a submission, got 500 bytes of another kind"),
    (
        write_map(WINNABLE.raw)[:1240],
        "offset 1240: expected 4 records, as the counts at 1150 say, got the end after 2",
    ),
    (b"$a#00#\n", "line 1: expected 4 zero bytes and 966 tiles, got 1 bytes"),
    (b"format = 1\n[table]\n", "line 2: expected key = value, with a string or a number, got [table]"),
    (b"PK\3\4" + bytes(40), "file: expected a zip file, got no directory at its end"),
    (b"\x1f\x8b" + bytes(40), "packed data: expected a whole zlib stream, got damaged data"),
]
"""Files of another kind or damaged, and what is said of each."""


def for_each(code: str) -> str:
    """Return JavaScript that runs code for each of ``data``, all in one process."""
    return f"return Promise.all(data.map(async (data) => {{ {code} }}))"


def test_other_files_are_refused_in_one_line(folder):
    code = for_each("try { await files.open(bytes(data)); return 'taken'; } catch (error) { return error.message; }")
    assert in_node(folder, code, [as_text(data) for data, _ in OTHERS]) == [message for _, message in OTHERS]


POLICIES = Path(site.__file__).parents[1] / "policies"
TAKEN = "try { const { policy } = await files.open(bytes(data)); return {...policy, weights: text(policy.weights)}; }"
TAKEN += " catch (error) { return error.message; }"


def test_a_checkpoint_that_is_opened_is_the_bundled_policy(folder):
    policies = page_policies()
    paths = [POLICIES / f"{policy.name}.pt" for policy in policies]
    found = in_node(folder, for_each(TAKEN), [as_text(path.read_bytes()) for path in paths])
    for policy, got in zip(policies, found, strict=True):
        whole = json.loads(json.dumps({**policy._asdict(), "weights": as_text(policy.weights)}))
        del whole["name"], whole["title"]
        assert got == whole, policy.name


def checkpoint(**changed) -> bytes:
    """Return a checkpoint with some other contents; None leaves one out."""
    content = load_checkpoint(POLICIES / "builtin.pt")
    fields = {field.name: getattr(content, field.name) for field in dataclasses.fields(content)}
    for name, value in changed.items():
        merged = {**fields[name], **value} if isinstance(value, dict) else value
        fields[name] = {key: each for key, each in merged.items() if each is not None} if merged is not value else value
    stream = io.BytesIO()
    torch.save(fields, stream)
    return stream.getvalue()


CHANGED = [
    ({"policy": 5}, "checkpoint: expected policy, as checkpoints of nclone_env have, got none"),
    ({"policy": {"actor.weight": None}}, "policy: expected logits of 6 actions, got 64"),
    ({"policy": {"memory.weight": torch.zeros(3, 3), "memory.bias": torch.zeros(3)}},
     "policy: expected layers of vectors and of locals, got memory.weight"),
    ({"policy": {"actor.bias": torch.zeros(12)[::2]}}, "data/5: expected 6 numbers, got 12"),
    ({"train_config": {"dtype": "float64"}}, "dtype: expected float32 or float16, got float64"),
    ({"train_config": {"frame_stack": 65}}, "frame_stack: expected a whole number, got 65"),
    ({"train_config": {"recurrent_size": 64}}, "recurrent_size: expected layers of 192 and 192 units, got 0"),
    ({"policy": {"recurrence.weight_ih": torch.zeros(9, 30), "recurrence.bias_ih": torch.zeros(9)}},
     "recurrent_size: expected layers of 0 units, got 9"),
    ({"train_config": {"paths": "roads"}}, "paths: expected tiles or doors, and observations, got roads"),
    ({"train_config": {"locals_size": 1e9}}, "locals_size: expected a whole number, got 1000000000"),
    ({"train_config": {"frame_skip": 0}}, "frame_skip: expected a whole number, got 0"),
    ({"counters": {"timesteps": 2**60, "date": datetime.date(2026, 1, 2)}}, None),
]  # fmt: skip
"""Changes of a checkpoint, and what is said of each; None: it is taken."""


def test_checkpoints_that_pages_do_not_have_the_network_of_are_refused(folder):
    found = in_node(folder, for_each(TAKEN), [as_text(checkpoint(**changed)) for changed, _ in CHANGED])
    for (changed, message), got in zip(CHANGED, found, strict=True):
        assert got == message if message else got["layers"], changed


def test_damaged_checkpoints_are_refused(folder):
    whole = checkpoint()
    start = whole.index(b"}q\x00")
    cuts = [whole[:-100], whole[: start + 3] + b"\xff" * 8 + whole[start + 11 :]]
    assert all("expected" in said for said in in_node(folder, for_each(TAKEN), list(map(as_text, cuts))))
    code = "try { files.readPolicy(new Map([['a/data.pkl', bytes(data)]])); } catch (error) { return error.message; }"
    pickled = (b"", b".", b"\x80\x02(t", b"\x80\x02K", b"\x80\x02}q\x00(X\xff\xff\xff\xff", b"\x80\x02].")
    found = in_node(folder, for_each(code), list(map(as_text, pickled)))
    assert {said.split(":")[0] for said in found} <= {"data.pkl", "checkpoint"}


def test_changed_bytes_of_a_checkpoint_are_refused_in_one_line_or_harmless(folder):
    code = """
    const members = await files.readZip(bytes(data.file)), name = "archive/data.pkl";
    return data.changes.map(([place, byte]) => {
      const changed = members.get(name).slice();
      changed[place] = byte;
      try { return files.readPolicy(new Map(members).set(name, changed)).layers.length > 0; }
      catch (error) { return error.message; }
    });
    """
    rng, file = np.random.default_rng(8), (POLICIES / "builtin.pt").read_bytes()
    changes = np.stack([rng.integers(0, 3080, 2000), rng.integers(0, 256, 2000)], axis=1).tolist()
    found = in_node(folder, code, {"file": as_text(file), "changes": changes})
    texts = [each for each in found if each is not True]
    assert [each for each in texts if ": expected " not in each] == []
    assert len(texts) > 200
