"""Collections in files."""

import numpy as np

from nclone_env.generate.collection import CollectionFiles, PackEntry, write_collection
from nclone_env.level.build import build_room
from nclone_env.level.formats import reader
from nclone_env.level.formats.pack_text import write_pack
from nclone_env.level.reference import resolve


def test_a_large_pack_gets_an_index(tmp_path, monkeypatch):
    files = CollectionFiles(tmp_path / "pack.txt")
    for limit, names in ((1 << 26, {"pack.txt"}), (1_000, {"pack.txt", "pack.txt.index"})):
        monkeypatch.setattr(reader, "MAX_FILE_SIZE", limit)
        lines = [write_pack([build_room(f"gold {number} 50").raw]) for number in range(40, 45)]
        made = (PackEntry(line, {"number": n}, f"{n}.replay", b"x") for n, line in enumerate(lines))
        assert write_collection(files, made, lambda entry: None) == 5
        assert {path.name for path in tmp_path.glob("pack.txt*")} == names
    index = np.load(tmp_path / "pack.txt.index")
    assert index.tolist()[-1] == [5, len(b"".join(lines[:4])), len(b"".join(lines)) - 1]
    (ref,) = resolve(f"{files.pack}#3")
    assert write_pack([ref.load().raw]) == lines[3]
