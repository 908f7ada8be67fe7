"""Verification: a submission is played again, and what that proves is told apart from what it claims."""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from nclone_env.benchmark.attempts import Attempts, Run, drawn_repeats
from nclone_env.benchmark.evaluation import evaluate, run_of
from nclone_env.benchmark.scores import Score, scores
from nclone_env.benchmark.submission import Submission, as_values, check_submission, read_submission
from nclone_env.benchmark.track import Track, load_track, track_levels
from nclone_env.errors import FormatError, NcloneError, checked, shortened
from nclone_env.level import LevelSet, pack
from nclone_env.train import SILENT, Hooks

_LEAST_EQUAL = 0.99
"""Share of the episodes that an included policy must reproduce; rounding on another processor changes a few."""


@dataclass(frozen=True)
class Verification:
    """What playing a submission again has shown."""

    faults: tuple[str, ...]
    """Why it is refused; nothing if it is accepted."""
    proved: tuple[str, ...] = ()
    """What the replay proves, in words."""
    claimed: tuple[str, ...] = ()
    """What it only claims."""
    scores: Mapping[str, Score] = field(default_factory=dict)
    """Its scores, computed from the replay."""
    episodes: int = 0
    """Episodes that were played."""
    frames: int = 0
    """Frames that were simulated."""
    seconds: float = 0.0
    """Processor seconds of this thread that playing took."""
    authors: int = 0
    """Authors over whom the intervals of the scores are, those of means; 0: those of interquartile means over seeds."""

    @property
    def accepted(self) -> bool:
        """Whether nothing contradicts the submission."""
        return not self.faults


@checked()
def verify(
    source: str | Path | bytes | Submission,
    packs: Mapping[str, Path] | None = None,
    policies: bool = False,
    hooks: Hooks = SILENT,
) -> Verification:
    """Play every episode of a submission again.

    Args:
        source: path or contents of a submission, or one that was read.
        packs: for a track of the game, the file of each pack by name; for ``Community-v1``, files or folders of packs.
        policies: also let the policies that it includes choose the actions again, which takes as long as evaluating
            them.
        hooks: ``on_level`` is called after each batch of episodes of a policy.

    Raises:
        ConfigError: if a level is not the one of the track, or a pack is missing.
        OSError: if the file cannot be read.
    """
    try:
        if isinstance(source, Submission):
            check_submission(source)
        else:
            source = read_submission(source)
    except FormatError as error:
        return Verification((str(error),))
    track = load_track(source.track)
    level_set = _level_set(track, tuple((packs or {}).items()))
    began = time.thread_time()
    replayed = [
        run_of(track, level_set, run.seed, run.sampled[:2], None if run.probable is None else run.probable[:2])
        for run in source.runs
    ]
    seconds = time.thread_time() - began
    faults = [
        fault for number, run in enumerate(source.runs) for fault in _faults(f"run {number}", run, replayed[number])
    ]
    faults += [*_unrepeated(track, source), *_other_faults(track, source)]
    found = {} if faults else scores(track, replayed)
    if found and source.scores not in (None, expected := as_values(found)):
        faults.append(f"scores: expected {shortened(expected, 200)}, got {shortened(source.scores, 200)}")
    proofs, other = _reproduced(track, source, packs, hooks) if policies and not faults else ([], [])
    faults += other
    ends = [part.ends for run in replayed for part in (run.sampled, run.probable) if part is not None]
    return Verification(
        tuple(faults),
        (*_proved(track, source, sum(map(len, ends))), *proofs),
        _claimed(track, source),
        found,
        sum(map(len, ends)),
        sum(int(end["frames"].sum(dtype=np.int64)) for end in ends),
        seconds,
        track.authors,
    )


@lru_cache(maxsize=4)
def _level_set(track: Track, packs: tuple[tuple[str, Path], ...]) -> LevelSet:
    """Return the levels of a track; they are kept for further submissions."""
    return pack(track_levels(track, dict(packs)))


def _faults(where: str, stated: Run, found: Run) -> list[str]:
    """Return where the ends of a run differ from those that the simulator gives."""
    faults = []
    for kind in ("sampled", "probable"):
        given, got = getattr(stated, kind), getattr(found, kind)
        if given is None:
            continue
        cut = np.flatnonzero(~got.ends["whole"])
        other = np.flatnonzero((_bytes(given.ends) != _bytes(got.ends)).any(axis=1))
        if len(cut):
            faults.append(f"{where}: {kind} episode {cut[0]}: expected to end with its last action, got another end")
        elif len(other):
            one, two = given.ends[other[0]], got.ends[other[0]]
            faults.append(f"{where}: {kind} episode {other[0]}: expected the end {one}, got {two}")
    return faults


def _unrepeated(track: Track, submission: Submission) -> Iterator[str]:
    """Yield where an action is another one than that of the step before though this was to be taken again."""
    for number, run in enumerate(submission.runs if track.is_sticky else ()):
        for kind, attempts in (("sampled", run.sampled), ("probable", run.probable)):
            taken = [] if attempts is None else attempts.episodes()
            key = track.action_repeat_probability, run.seed, kind == "probable"
            for place, actions in enumerate(taken):
                (repeats,) = drawn_repeats(*key, [place], len(actions))
                broken = np.flatnonzero(repeats[1:] & (actions[1:] != actions[:-1]))
                if len(broken):
                    yield (
                        f"run {number}: {kind} episode {place}: expected the action of step {broken[0]} again in step "
                        f"{broken[0] + 1}, as drawn for seed {run.seed}, got another one"
                    )
                    break


def _bytes(ends: np.ndarray) -> np.ndarray:
    """Return (E,) ends as (E, bytes) uint8: a forged bool may be neither 0 nor 1."""
    return np.frombuffer(ends.tobytes(), np.uint8).reshape(len(ends), -1)


def entry_faults(track: Track, budget: str, runs: Sequence[Any]) -> list[str]:
    """Return what contradicts in runs, or in policies that are to play: the budget, and seeds that are there twice."""
    faults = []
    for number, run in enumerate(runs):
        for name, most in track.budgets[budget].items():
            got: Any = run.claimed.get(name)
            is_number = isinstance(got, int | float | np.integer | np.floating) and not isinstance(got, bool)
            if not is_number or not 0 <= got <= most:
                faults.append(f"run {number}: budget {budget}: expected {name} of 0 to {most}, got {shortened(got)}")
    if len({run.seed for run in runs}) < len(runs):
        faults.append("runs: expected different seeds, got the same twice")
    return faults


def _other_faults(track: Track, submission: Submission) -> list[str]:
    """Return what else contradicts: the budget, and runs that are there twice."""
    faults = entry_faults(track, submission.budget, submission.runs)
    played = [(run.sampled.steps.tobytes(), run.sampled.actions.tobytes()) for run in submission.runs]
    if len(set(played)) < len(played):
        faults.append("runs: expected different episodes, got the same twice")
    if len({run.probable is None for run in submission.runs}) > 1:
        faults.append("runs: expected most probable episodes in all or none, got them in some")
    return faults


def _proved(track: Track, submission: Submission, episodes: int) -> tuple[str, ...]:
    attempts = f"{track.attempts} sampled" + (" and the most probable" if submission.runs[0].probable else "")
    chance = track.action_repeat_probability
    repeated = (f"actions: at {chance:.0%} of the steps, drawn for the seed of the run, the one before",)
    return (
        f"levels: the {len(track.levels)} of {track.name}, each with its digest",
        f"episodes: {episodes:,}, {attempts} on each level for each of {len(submission.runs)} seeds, none left out",
        "ends: these actions, each held for "
        f"{track.frame_skip} frames, win, die or time out as stated, in the stated frame",
        "scores: those of these episodes",
        *(repeated if track.is_sticky else ()),
    )


def _claimed(track: Track, submission: Submission) -> tuple[str, ...]:
    """Return the claims in words, with how many sampled episodes repeat an earlier one of their level."""
    budget = ", ".join(f"{name} at most {most:,}" for name, most in track.budgets[submission.budget].items())
    repeated = repeats([run.sampled for run in submission.runs], track.attempts)
    count = sum(len(run.sampled.steps) for run in submission.runs)
    return (
        f"training: within the budget {submission.budget} ({budget}), on {track.training}",
        f"mode: {submission.mode}",
        f"attempts: the first {track.attempts} of each level, chosen by the policy; "
        f"{repeated:,} of {count:,} repeat another",
    )


def _reproduced(
    track: Track, submission: Submission, packs: Mapping[str, Path] | None, hooks: Hooks
) -> tuple[list[str], list[str]]:
    """Let included policies play again; return what that proves, and faults."""
    proofs, faults = [], []
    for number, run in enumerate(submission.runs):
        if run.policy is None:
            continue
        with TemporaryDirectory() as folder:
            file = Path(folder) / "policy.pt"
            file.write_bytes(run.policy)
            try:
                again = evaluate(file, track, submission.mode, seed=run.seed, packs=packs, hooks=hooks)
            except NcloneError as error:
                faults.append(f"run {number}: policy: expected one that plays in mode {submission.mode}, got {error}")
                continue
        pairs = [(run.sampled, again.sampled)] + ([(run.probable, again.probable)] if run.probable else [])
        equal = [
            one.tobytes() == two.tobytes()
            for given, got in pairs
            if given and got
            for one, two in zip(given.episodes(), got.episodes())
        ]
        share = sum(equal) / len(equal)
        text = f"run {number}: policy: {sum(equal):,} of {len(equal):,} episodes chosen again by the included policy"
        if share >= _LEAST_EQUAL:
            proofs.append(text)
        else:
            faults.append(f"{text}, expected at least {_LEAST_EQUAL:.0%}")
    return proofs, faults


def repeats(runs: Sequence[Attempts], per_level: int) -> int:
    """Return how many episodes of some runs have the actions of an earlier one of their level."""
    played = [[one.tobytes() for one in run.episodes()] for run in runs]
    levels = (
        [one for run in played for one in run[first : first + per_level]]
        for first in range(0, len(played[0]), per_level)
    )
    return sum(len(level) - len(set(level)) for level in levels)
