"""The documented fields of the JSON report are those that it has."""

import dataclasses
import json
import re

from nclone_env.memory.report import json_text
from nclone_env.memory.stats import compute_stats

from ..processes import REPOSITORY
from .by_hand import measurements


def documented():
    """Return the words in backticks of each key in the table."""
    page = (REPOSITORY / "docs" / "operation" / "profiling.md").read_text().split("## JSON")[1].split("## ")[0]
    table = {}
    for row in re.findall(r"^\| (`.*)$", page, re.MULTILINE):
        keys, fields, _ = (re.findall(r"`(\w+)`", cell) for cell in row.split("|"))
        table.update({key: set(fields) for key in keys})
    return table


def test_every_key_and_field_is_documented():
    content, table = json.loads(json_text(compute_stats(measurements(traced_per_step=100)))), documented()
    assert set(content) == set(table)
    for key, value in content.items():
        record = value[0] if isinstance(value, list) else value
        if isinstance(record, dict):
            assert set(record) == table[key] - {"env_steps"}, key


def test_nothing_of_the_recording_by_hand_is_empty():
    """Else its fields would go unchecked."""
    made = dataclasses.replace(measurements(traced_per_step=100), tracing=(200, 1000))
    assert not [field.name for field in dataclasses.fields(made) if not getattr(made, field.name)]
