"""Makes a policy of the package out of a training run: its weights, and a card with its scores.

First the weights alone; ``nclone-env benchmark submit NAME`` then plays the tracks, and a second call writes the card:

    python -m profiling.training.bundled_policies generated RUN
    python -m profiling.training.bundled_policies generated RUN --title TEXT --commands COMMAND \
        --results result.zip --on "built-in levels=first-steps jumps hazards" "intro levels=SI.txt"
"""

from __future__ import annotations

import dataclasses
import datetime
import hashlib
import io
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
import tyro

from nclone_env._files import write_file
from nclone_env.benchmark import evaluate as play
from nclone_env.benchmark import load_track, read_submission, verify
from nclone_env.benchmark.scores import measures
from nclone_env.benchmark.track import TrackLevel
from nclone_env.config import EnvironmentConfig
from nclone_env.level import resolve
from nclone_env.train import Policy, evaluate, load_policy
from nclone_env.train.policies.checkpoint import SAVED_FIELDS, Checkpoint, load_checkpoint
from nclone_env.train.policies.files import BUNDLED, checkpoint_file
from nclone_env.train.runs.curve import Rows

ATTEMPTS, MAX_FRAMES = 16, EnvironmentConfig().max_frames
"""Of each level, within the time that the game gives."""
SAMPLE = {"levels": ["first-steps"], "episodes": 8, "seed": 1}
"""What a test plays again."""
_SAMPLES = 2000
_EMPTY = ("optimiser", "episodes", "environments", "held_out", "selection", "reference")
_PLAYED = {
    "name": "",
    "output": "runs",
    "num_threads": None,
    "mirrored": False,
    "held_out": 0.0,
    "starts": (),
    "max_frames": MAX_FRAMES,
}
"""Options that only training needs, at their defaults, and the time limit of the game."""


def weights(checkpoint: Checkpoint, levels: tuple[str, ...]) -> bytes:
    """Return a checkpoint that plays and is no more, with other levels, as bytes that depend on its contents only."""
    names = tuple("".join(level) for level in levels)  # copies: a pickle tells equal strings from one string twice
    options = {**checkpoint.train_config, **_PLAYED, "levels": names or checkpoint.train_config["levels"]}
    kept = dataclasses.replace(
        checkpoint,
        train_config=options,
        observations={name: array[:, :0].clone() for name, array in checkpoint.observations.items()},  # their dtypes
        curve=Rows(0).state(),
        **{part: {} for part in _EMPTY},
    )
    buffer = io.BytesIO()
    torch.save({name: getattr(kept, name) for name in SAVED_FIELDS}, buffer)
    return buffer.getvalue()


def seconds(curve: Rows) -> float:
    """Return the seconds of training without its preparation and evaluations."""
    steps = np.diff([0.0, *(each["timesteps"] for each in curve)])
    return float(sum(count / each["steps_per_second"] for count, each in zip(steps, curve)))


def row(title: str, sampled: np.ndarray, any_of: np.ndarray, argmax: np.ndarray) -> dict[str, Any]:
    """Return the scores on some levels, given the success on each, with a 95 % interval of a bootstrap over levels."""
    draws = np.random.default_rng(0).integers(len(sampled), size=(_SAMPLES, len(sampled)))
    low, high = np.percentile(sampled[draws].mean(axis=1), (2.5, 97.5))
    found = {"sampled": sampled.mean(), "low": low, "high": high, "any": any_of.mean(), "argmax": argmax.mean()}
    return {"on": title, "levels": len(sampled), **{name: round(float(value), 4) for name, value in found.items()}}


def from_submission(file: Path, digest: str) -> list[dict[str, Any]]:
    """Return the scores of a submission of the policy, over all levels of its track, then of each band."""
    submission, verified = read_submission(file), verify(file)
    (run,) = submission.runs
    if not verified.accepted or hashlib.sha256(run.policy or b"").hexdigest() != digest:
        raise SystemExit(f"{file}: expected an accepted submission of this policy alone")
    track = load_track(submission.track)
    found = measures(track, run)
    columns = [found[name] for name in ("success", "any", "probable")]
    rows = [row(track.name, *columns)]
    if track.bands > 1:
        parts = zip(*(column.reshape(track.bands, -1) for column in columns))
        rows += [row(f"{track.name}, band {number + 1}", *part) for number, part in enumerate(parts)]
    return rows


def played(policy: Policy, title: str, names: tuple[str, ...]) -> dict[str, Any]:
    """Play levels as a track is played, and return the scores."""
    refs = [ref for name in names for ref in resolve(name)]
    levels = tuple(TrackLevel(ref.reference, 1, ref.load().raw.digest[:16]) for ref in refs)
    track = dataclasses.replace(
        load_track("Builtin-v1"), levels=levels, attempts=ATTEMPTS, max_frames=MAX_FRAMES, modes=(mode_of(policy),)
    )
    found = measures(track, play(policy, track, mode_of(policy), seed=policy.config.seed))
    return row(title, found["success"], found["any"], found["probable"])


def mode_of(policy: Policy) -> str:
    """Return the mode of a track that the policy plays in."""
    return "look-ahead" if {"action_outcomes", "free_motion"} & set(policy.config.environment.observations) else "state"


def sample(policy: Policy) -> dict[str, Any]:
    """Return how many episodes of a small sample the policy wins on each level."""
    environment = policy.environment.replace(levels=tuple(SAMPLE["levels"]))
    results = evaluate(policy.network, environment, "sampled", SAMPLE["episodes"], SAMPLE["seed"])
    return {**SAMPLE, "won": [round(result.success_rate * result.episodes) for result in results]}


def as_toml(card: Mapping[str, Any], rows: Iterable[Mapping[str, Any]], tried: Mapping[str, Any]) -> str:
    """Return a card as TOML."""
    lines = [_pair(*item) for item in card.items()]
    lines += ["", "[sample]", *(_pair(*item) for item in tried.items())]
    for each in rows:
        lines += ["", "[[scores]]", *(_pair(*item) for item in each.items())]
    return "\n".join([*lines, ""])


def _pair(name: str, value: Any) -> str:
    return f"{name} = {json.dumps(value, ensure_ascii=False)}"  # TOML writes these values as JSON does


def main(
    name: tyro.conf.Positional[str],
    run: tyro.conf.Positional[Path],
    title: str = "",
    trained_on: str = "",
    commands: tuple[str, ...] = (),
    levels: tuple[str, ...] = (),
    results: tuple[Path, ...] = (),
    on: tuple[str, ...] = (),
) -> None:
    """Write the weights, and with a title the card.

    Args:
        name: of the policy.
        run: folder of the run.
        title: what the policy does.
        trained_on: its training levels, in words.
        commands: that made the run.
        levels: that the policy plays where none are named; by default those of the run.
        results: submissions of the policy to tracks.
        on: further lists of levels, TITLE=LEVELS with spaces between several.
    """
    checkpoint = load_checkpoint(checkpoint_file(run))
    data = weights(checkpoint, levels)
    digest = hashlib.sha256(data).hexdigest()
    write_file(BUNDLED / f"{name}.pt", data)
    print(f"{name}.pt: {len(data):,} bytes, {digest}")
    if not title:
        return
    policy = load_policy(BUNDLED / f"{name}.pt", levels=("first-steps",))
    card = {
        "title": title,
        "mode": mode_of(policy),
        "trained_on": trained_on,
        "commands": list(commands),
        "seed": policy.config.seed,
        "steps": checkpoint.counters["timesteps"],
        "seconds": round(seconds(Rows.of(checkpoint.curve))),
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "licence": "MIT",
        "sha256": digest,
        "attempts": ATTEMPTS,
        "max_frames": MAX_FRAMES,
    }
    rows = [each for file in results for each in from_submission(file, digest)]
    rows += [played(policy, *_named(each)) for each in on]
    write_file(BUNDLED / f"{name}.toml", as_toml(card, rows, sample(policy)).encode())


def _named(text: str) -> tuple[str, tuple[str, ...]]:
    title, _, levels = text.partition("=")
    return title, tuple(levels.split())


if __name__ == "__main__":
    tyro.cli(main, description=__doc__)
