"""Proofs that no solution of a level is faster: by a lower bound, or by an exhaustive search; and their certificates.

A certificate is a JSON object:

========== =========================================================================================
format     1
level      name of the level
digest     SHA-256 of its tiles and records
frames     T, of the fastest solution
inputs     of a solution with T frames, as words such as ``24RJ``
method     ``bound``: the lower bound is T; ``search``: all shorter inputs were tried
bound      lower bound: frames, rule, width of the intervals
layers     of a search: states and digest (hexadecimal) after 0, 1, 2... frames
========== =========================================================================================

``prove.check`` checks one. It does not read ``level`` and ``layers``, which are there for people, and of ``bound`` only
the width: it computes the bound, and does the search, afresh.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from nclone_env.constants import INPUT_LEFT, INPUT_RIGHT
from nclone_env.errors import ConfigError, FormatError, shortened
from nclone_env.level import Level, LevelSet, LevelSource, format_inputs, load_level, pack, parse_inputs
from nclone_env.plan import origin_of, replay, solve
from nclone_env.prove.bounds import Bound, lower_bound
from nclone_env.prove.exhaustive import make_reach, search, search_bytes, states_that_fit

FORMAT = 1
PROOF_MEMORY = 1_000_000_000
_LEAST_STATES = 10
_SEARCH_FRAMES = 4_000_000
"""Frames of a search for a solution; further frames go to another one."""
_WIDTHS = (1e-2, 3e-3, 1e-3, 2e-4)
"""Widths of the intervals of a bound, in the order they are tried; each takes several times as long as the last."""
_LEAST_WIDTH = 1e-4  # a bound with a smaller one takes too much memory and time


@dataclass(frozen=True, eq=False)
class Proof:
    """What is known of the fastest solution of a level.

    Attributes:
        level: the level.
        inputs: (T,) uint8, the fastest solution known; empty without one.
        bound: the lower bound.
        method: ``bound`` or ``search``; empty if the solution is not proved to be the fastest.
        layers: states and digest of each layer of the search.
        reason: why there is no proof.
    """

    level: Level
    inputs: np.ndarray
    bound: Bound
    method: str
    layers: tuple[tuple[int, int], ...] = ()
    reason: str = ""

    @property
    def frames(self) -> int:
        """Frames of the solution, 0 without one."""
        return len(self.inputs)

    @property
    def complete(self) -> bool:
        """Whether the solution is proved to be the fastest."""
        return bool(self.method)

    def certificate(self) -> bytes:
        """Return the certificate of a complete proof."""
        layers = [[states, f"{digest:016x}"] for states, digest in self.layers]
        return json.dumps(
            {
                "format": FORMAT,
                "level": self.level.name,
                "digest": self.level.raw.digest,
                "frames": self.frames,
                "inputs": format_inputs(self.inputs.tobytes()),
                "method": self.method,
                "bound": self.bound._asdict(),
                "layers": layers,
            },
            indent=1,
        ).encode()


def prove(
    level: LevelSource,
    inputs: np.ndarray | None = None,
    *,
    frames: int = 12_000_000,
    memory: int = PROOF_MEMORY,
) -> Proof:
    """Search for the fastest solution of a level and a proof that it is the fastest.

    Args:
        level: the level, in any form that ``load_level`` accepts.
        inputs: (T,) uint8, a solution, which is replayed; None: it is searched for.
        frames: frames to simulate in the searches for a solution.
        memory: bytes of the exhaustive search, at most.

    Raises:
        LevelFormatError, UnknownLevelError: if the level cannot be loaded.
        UnsupportedLevelError: if it has no exit.
        ConfigError: if the inputs do not win in their last frame, or the memory is too small for any search.
    """
    loaded = load_level(level)
    levels = pack([loaded])
    bound = lower_bound(levels, _WIDTHS[0])
    found = _solution(loaded, frames, bound) if inputs is None else _checked(levels, inputs)
    if not len(found):
        return Proof(loaded, found, bound, "", reason="no solution is known")
    for width in _WIDTHS[1:]:
        if bound.rule == "any" or bound.frames == len(found):
            break
        bound = max(bound, lower_bound(levels, width))
    if bound.frames > len(found):
        raise RuntimeError(f"prove: a solution of {len(found)} frames is below the lower bound, {bound}")
    if bound.frames == len(found):
        return Proof(loaded, found, bound, "bound")
    states = states_that_fit(levels, len(found), memory)
    if states < _LEAST_STATES:
        least = search_bytes(levels, len(found), _LEAST_STATES)
        raise ConfigError(f"memory: expected room for {_LEAST_STATES} states, {least:,} bytes, got {memory:,} bytes")
    layers, shorter, complete = search(levels, len(found), states, make_reach(levels, len(found)))
    if not complete:
        reason = f"{sum(count for count, _ in layers):,} states up to frame {len(layers) - 1} fill the memory"
        return Proof(loaded, found, bound, "", tuple(layers), reason)
    return Proof(loaded, found if shorter is None else shorter, bound, "search", tuple(layers))


def _solution(level: Level, frames: int, bound: Bound) -> np.ndarray:
    """Return the shortest solution of searches with several seeds, until one equals the bound; empty without one.

    Where a proof is possible, a search soon ends among solutions that edits do not shorten; another one ends elsewhere.
    """
    shortest = np.zeros(0, np.uint8)
    for seed in range(math.ceil(frames / _SEARCH_FRAMES)):
        found = solve(level, frames=min(frames, _SEARCH_FRAMES), seed=seed).inputs
        if len(found) and not 0 < len(shortest) <= len(found):
            shortest = found
        if len(shortest) == bound.frames:
            break
    return shortest


def _checked(levels: LevelSet, inputs: np.ndarray) -> np.ndarray:
    """Return the inputs of a solution, left alone where left and right are pressed, which is the same.

    Raises:
        ConfigError: if they do not win in their last frame.
    """
    found = np.asarray(inputs, np.uint8)
    both = INPUT_LEFT | INPUT_RIGHT
    found = np.where(found & both == both, found & ~np.uint8(INPUT_RIGHT), found)
    try:
        return replay(levels, origin_of(levels), found, 0).inputs
    except RuntimeError as error:
        name, frames = levels.levels[0].name, len(found)
        message = f"inputs: expected those of a solution, which win in their last frame; these {frames:,} frames do not"
        raise ConfigError(f"{message} on {name!r}") from error


@dataclass(frozen=True)
class Certificate:
    """The parts of a certificate."""

    digest: str
    frames: int
    inputs: bytes
    method: str
    bound: Bound
    layers: tuple[tuple[int, int], ...]


def read_certificate(data: bytes, source: str = "<bytes>") -> Certificate:
    """Return the parts of a certificate.

    Raises:
        FormatError: if it is malformed.
    """
    try:
        parts = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise FormatError(source, "file", "the JSON of a certificate", shortened(str(error))) from error
    if not isinstance(parts, dict) or parts.get("format") != FORMAT:
        got = parts.get("format") if isinstance(parts, dict) else type(parts).__name__
        raise FormatError(source, "format", str(FORMAT), shortened(got))
    try:
        return _certificate(parts, source)
    except FormatError:
        raise
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise FormatError(source, "certificate", "the parts that prove.proof describes", shortened(error)) from error


def _certificate(parts: Mapping[str, Any], source: str) -> Certificate:
    bound = Bound(int(parts["bound"]["frames"]), str(parts["bound"]["rule"]), float(parts["bound"]["width"]))
    if parts["method"] not in ("bound", "search"):
        raise FormatError(source, "method", "'bound' or 'search'", shortened(parts["method"]))
    if not (bound.width == 0.0 or _LEAST_WIDTH <= bound.width < 1.0):
        raise FormatError(source, "bound", f"a width of 0, or from {_LEAST_WIDTH} to 1", repr(bound.width))
    if not isinstance(parts["inputs"], str):
        raise FormatError(source, "inputs", "words such as '24RJ'", shortened(parts["inputs"]))
    layers = tuple((int(states), int(digest, 16)) for states, digest in parts["layers"])
    inputs = parse_inputs(parts["inputs"], f"{source}: inputs")
    return Certificate(str(parts["digest"]), int(parts["frames"]), inputs, parts["method"], bound, layers)
