"""``nclone-env prove`` and ``check-proof``: solutions that are proved to be the fastest, and checks of the proofs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from tyro.conf import Positional

from nclone_env._files import write_file
from nclone_env.cli.output import check_folder, check_free, claim_folder
from nclone_env.errors import ConfigError, FormatError, LevelFormatError, UnsupportedLevelError
from nclone_env.level import Level, OpenedPacks, load_level, pack, resolve
from nclone_env.level.formats import read_bytes
from nclone_env.prove import (
    CHECK_MEMORY,
    PROOF_MEMORY,
    check_certificate,
    lower_bound,
    make_reach,
    prove,
    read_certificate,
    search,
)
from nclone_env.replay import load_verified, recording_name

SUFFIX = ".proof.json"


def prove_levels(
    levels: Positional[tuple[str, ...]],
    recording: Path | None = None,
    frames: int = 12_000_000,
    memory: int = PROOF_MEMORY,
    output: Path = Path("proofs"),
    force: bool = False,
) -> int:
    """Search for fastest solutions with a proof; write a certificate of each, for ``check-proof``.

    The exit status is 0 if all levels have a proof, else 1.

    Args:
        levels: built-in sets or levels by name, level files, folders or packs (pack.txt, pack.txt#12) by path.
        recording: recording of a solution of the only level, or an attract file; without one, a solution is searched
            for.
        frames: frames to simulate in that search; each four million have another seed.
        memory: bytes of the exhaustive search, at most.
        output: folder for the certificates.
        force: replace certificates of the same levels in the output folder.
    """
    packs: OpenedPacks = {}
    refs = [ref for name in levels for ref in resolve(name, packs)]
    if not refs:
        raise ConfigError("levels: expected at least one level, got none; name a set, a level or a file")
    if recording is not None and len(refs) != 1:
        raise ConfigError(f"recording: expected one level, got {len(refs)}; prove the levels one by one")
    check_folder("output", output)
    for name, value in (("frames", frames), ("memory", memory)):
        if value <= 0:
            raise ConfigError(f"{name}: expected a number above 0, got {value}")
    inputs = None if recording is None else _inputs_of(recording, refs[0].load())
    output.mkdir(parents=True, exist_ok=True)
    claim_folder(output)
    files = [output / f"{Path(recording_name(number, ref.name)).stem}{SUFFIX}" for number, ref in enumerate(refs)]
    for file in files:
        check_free(file, force)
    proved = 0
    print(f"{'level':<32}  frames  at least  proof")
    for ref, file in zip(refs, files, strict=True):
        try:
            proof = prove(ref.load(), inputs, frames=frames, memory=memory)
        except (LevelFormatError, UnsupportedLevelError) as error:
            print(f"{ref.name:<32.32}  {error}")
            continue
        found = str(proof.frames) if proof.frames else "-"
        verdict = proof.method or f"none: {proof.reason}"
        print(f"{ref.name:<32.32}  {found:>6}  {proof.bound.frames:>8}  {verdict}", flush=True)
        if proof.complete:
            proved += 1
            write_file(file, proof.certificate())
    print(f"{proved} of {len(refs)} levels with a proof; certificates in {output}")
    return int(proved < len(refs))


def _inputs_of(recording: Path, level: Level) -> np.ndarray:
    """Return the inputs of a recording of a level.

    Raises:
        ConfigError: if it is of another level, or the simulator does not reproduce it.
        LevelFormatError, RecordingError, UnknownLevelError: if it cannot be read.
    """
    file, verdict = load_verified(recording)
    if file.level.digest != level.raw.digest:
        raise ConfigError(f"recording: expected one of {level.name!r}, got {recording}, which is of another level")
    if not verdict.agrees:
        raise ConfigError(f"recording: expected one that the simulator reproduces, got {recording}: {verdict.reason}")
    return np.asarray(file.inputs, np.uint8)


def check_proof(file: Positional[Path], level: Positional[str], memory: int = CHECK_MEMORY) -> int:
    """Check a certificate of ``prove``; the exit status is 0 if it holds, else 1.

    Args:
        file: the certificate.
        level: the level it is of: a built-in level by name, or a file by path (pack.txt#12).
        memory: bytes of the states of a search, at most; a certificate that needs more does not hold.
    """
    if memory <= 0:
        raise ConfigError(f"memory: expected a number above 0, got {memory}")
    try:
        certificate = read_certificate(read_bytes(file), str(file))
    except FormatError as error:
        print(error)
        return 1
    check = check_certificate(certificate, load_level(level), memory)
    by = f"{certificate.method}, {check.states:,} states" if check.states else certificate.method
    print(f"holds: no solution has fewer than {certificate.frames} frames ({by})" if check.holds else check.reason)
    return int(not check.holds)


def compile_proofs() -> None:
    """Compile the kernels of ``prove``."""
    levels = pack([load_level("first-steps/01-walk")])
    lower_bound(levels, 0.1)
    search(levels, 3, 1000, make_reach(levels, 3))
