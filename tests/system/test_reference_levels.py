"""Recorded and official levels load, where the reference data are at hand."""

import numpy as np
import pytest

from nclone_env.level.formats.attract import is_attract, read_attract
from nclone_env.level.formats.map_bytes import read_map, write_map
from nclone_env.level.formats.reader import LevelFile
from nclone_env.level.formats.text import format_text, parse_text

from ..level.level_bases import same
from ..shared import ATTRACT, SHARED, needs_shared

pytestmark = needs_shared


def test_all_attract_files():
    assert len(ATTRACT) >= 14
    for path in ATTRACT:
        data = path.read_bytes()
        assert is_attract(data)
        file = read_attract(data, str(path))
        assert str(file.level.level_id) == path.name
        assert file.level.author == "Metanet Software"
        assert len(file.inputs) > 30
        assert same(LevelFile(data).level(), file.level)
        assert same(read_map(write_map(file.level)), file.level)
        assert same(parse_text(format_text(file.level)), file.level)


@pytest.mark.parametrize("every", [10, pytest.param(1, marks=pytest.mark.slow)])
def test_the_maps_of_traces(every):
    paths = sorted((SHARED / "traces").glob("*.npz"))
    assert len(paths) >= 1000
    for path in paths[::every]:
        with np.load(path) as trace:
            raw = LevelFile(trace["map_data"].tobytes()).level()
            exits = int((trace["ent_type"] == 3).sum())
        assert (raw.records[:, 0] == 3).sum() == exits
        canonical = write_map(raw)
        assert same(read_map(canonical), raw)
        text = format_text(raw)
        assert format_text(parse_text(text)) == text
