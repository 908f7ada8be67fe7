"""Distance fields as arrays, by the description of their codes alone."""

import numpy as np

from nclone_env.level.routes.fields import FIELD_SHAPE


def lengths_of(fields, number: int) -> np.ndarray:
    """Return the (51, 89) float32 path lengths of a field, infinite without a path."""
    lengths = np.full(FIELD_SHAPE, np.inf)
    first, first_rest, unit, shift = fields.fields[number].item()
    for j, (place, left, count) in enumerate(fields.rows[number].tolist()):
        for i, code in enumerate(fields.codes[first + place : first + place + count].tolist(), left):
            if code != 2**16 - 1:
                lengths[j, i] = unit * (code >> shift) + float(fields.rests[first_rest + code % 2**shift])
    assert np.array_equal(lengths, lengths.astype(np.float32))
    return lengths.astype(np.float32)


def all_lengths(fields) -> np.ndarray:
    """Return the (F, 51, 89) float32 path lengths of all fields."""
    return np.stack([lengths_of(fields, number) for number in range(len(fields.fields))])
