"""Submissions to the benchmark, forged and damaged: none is accepted but those that state what the original states.

A forger knows the format: all digests inside are made right again after a change, and often the scores too.
"""

import hashlib
import json
import random
from dataclasses import replace
from functools import lru_cache

import numpy as np

from nclone_env.benchmark import Run, Submission, read_submission, verify
from nclone_env.benchmark.attempts import Attempts
from nclone_env.benchmark.scores import scores
from nclone_env.benchmark.submission import as_values, write_submission
from nclone_env.benchmark.track import TRACK_NAMES
from nclone_env.errors import FormatError

from ..benchmark.bases import TRACK, complete, honest
from ..shared import archived, members_of
from .accidents import VALUES, damaged, drawn, with_other_parts
from .target import SOURCE, Target

_LEVELS = len(TRACK.levels)


@lru_cache(maxsize=1)
def submissions() -> list[bytes]:
    return [write_submission(honest()), write_submission(complete())]


def forged(rng: random.Random) -> bytes:
    share, place = rng.random(), rng.randrange(2)
    base, whole = (honest(), complete())[place], submissions()[place]
    if share < 0.02:
        return whole
    if share < 0.1:
        return damaged(rng, whole)
    if share < 0.2:
        return other_index(rng, whole)
    if share < 0.35:
        return write_submission(rng.choice(_EDITS)(rng, base))
    runs = list(base.runs)
    place = rng.randrange(len(runs))
    forgery, run = rng.choice(_FORGERIES), runs[place]
    runs[place] = of_probable(rng, run) if run.probable and rng.random() < 0.2 else forgery(rng, run)
    is_whole = len(runs[place].sampled.steps) == _LEVELS * TRACK.attempts
    stated = None if is_whole and rng.random() < 0.5 else _scores(base)
    return write_submission(replace(base, runs=tuple(runs), scores=stated))


@lru_cache(maxsize=2)
def _stated(submission: Submission) -> str:
    return json.dumps(as_values(scores(TRACK, submission.runs)))


def _scores(submission: Submission) -> dict[str, dict[str, float]]:
    return json.loads(_stated(submission))


def other_index(rng: random.Random, data: bytes) -> bytes:
    """Replace, remove, rename or repeat a part of the index, or a member."""
    members = members_of(data)
    index = json.loads(members.pop("submission.json"))
    if rng.random() < 0.5:
        index = with_other_parts(rng, index, lambda rng: drawn(rng, VALUES))
    else:
        one, other = rng.sample([*members], 2)
        members[one] = rng.choice((members[other], damaged(rng, members[one]), b""))
        index["members"] = {name: hashlib.sha256(data).hexdigest() for name, data in members.items()}
    return archived([("submission.json", json.dumps(index, default=str).encode()), *members.items()])


def _episodes(run: Run) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return the actions and the end of each episode."""
    return [(part.copy(), end.copy()) for part, end in zip(run.sampled.episodes(), run.sampled.ends)]


def _with(run: Run, episodes: list[tuple[np.ndarray, np.ndarray]]) -> Run:
    steps = np.array([len(actions) for actions, _ in episodes], np.uint32)
    ends = np.array([end for _, end in episodes], run.sampled.ends.dtype)
    return replace(run, sampled=Attempts(steps, np.concatenate([actions for actions, _ in episodes]), ends))


def _place(rng: random.Random, run: Run, won: bool) -> int:
    return rng.choice(np.flatnonzero(run.sampled.ends["won"] == won).tolist())


def other_level(rng: random.Random, run: Run) -> Run:
    """Exchange all episodes of two levels."""
    episodes, (one, two) = _episodes(run), rng.sample(range(_LEVELS), 2)
    size = TRACK.attempts
    for number in range(size):
        left, right = one * size + number, two * size + number
        episodes[left], episodes[right] = episodes[right], episodes[left]
    return _with(run, episodes)


def shorter(rng: random.Random, run: Run) -> Run:
    """Cut actions off the end of an episode, and the frames that it states."""
    episodes, place = _episodes(run), _place(rng, run, rng.random() < 0.5)
    actions, end = episodes[place]
    cut = rng.randrange(1, len(actions))
    end["frames"] -= min(rng.choice((0, 1, 4 * cut)), int(end["frames"]) - 1)
    episodes[place] = actions[:-cut], end
    return _with(run, episodes)


def fewer_frames(rng: random.Random, run: Run) -> Run:
    """State fewer frames."""
    episodes, place = _episodes(run), _place(rng, run, True)
    episodes[place][1]["frames"] -= rng.randrange(1, 50)
    return _with(run, episodes)


def longer(rng: random.Random, run: Run) -> Run:
    """Add actions behind the end of an episode."""
    episodes, place = _episodes(run), _place(rng, run, True)
    episodes[place] = np.append(episodes[place][0], np.uint8(rng.randrange(6))), episodes[place][1]
    return _with(run, episodes)


def dropped(rng: random.Random, run: Run) -> Run:
    """Leave out losing attempts."""
    episodes, place = _episodes(run), _place(rng, run, False)
    del episodes[place : place + rng.choice((1, 1, TRACK.attempts))]
    return _with(run, episodes)


def repeated(rng: random.Random, run: Run) -> Run:
    """Put a winning attempt in the place of a losing one."""
    episodes, place = _episodes(run), _place(rng, run, True)
    first = place - place % TRACK.attempts
    for other in range(first, first + TRACK.attempts):
        if other != place and (rng.random() < 0.3 or other == first + (place - first + 1) % TRACK.attempts):
            episodes[other] = episodes[place]
    return _with(run, episodes)


def won(rng: random.Random, run: Run) -> Run:
    """State a victory where there was none."""
    episodes, place = _episodes(run), _place(rng, run, False)
    episodes[place][1]["won"] = True
    return _with(run, episodes)


def other_action(rng: random.Random, run: Run) -> Run:
    """Change an action."""
    episodes, place = _episodes(run), rng.randrange(len(run.sampled.steps))
    actions = episodes[place][0]
    step = rng.randrange(len(actions))
    actions[step] = (actions[step] + rng.randrange(1, 6)) % 6
    return _with(run, episodes)


def other_mark(rng: random.Random, run: Run) -> Run:
    """Change what binds an episode to its place."""
    episodes, place = _episodes(run), rng.randrange(len(run.sampled.steps))
    episodes[place][1]["mark"] ^= 1 << rng.randrange(32)
    return _with(run, episodes)


def other_seed(rng: random.Random, run: Run) -> Run:
    """State another seed."""
    return replace(run, seed=rng.randrange(2, 100))


def more_training(rng: random.Random, run: Run) -> Run:
    """State more training than the budget allows, or none that can be compared with it."""
    return run.claiming({"steps": rng.choice((4_000_001, 10**12, -1, None, "4m", True, [1]))})


def of_probable(rng: random.Random, run: Run) -> Run:
    """Forge an episode of the most probable actions."""
    forgery = rng.choice((shorter, fewer_frames, longer, won, other_action, other_mark))
    assert run.probable
    return replace(run, probable=forgery(rng, replace(run, sampled=run.probable)).sampled)


def other_scores(rng: random.Random, submission: Submission) -> Submission:
    """Edit the summary."""
    stated = _scores(submission)
    name = rng.choice(list(stated))
    key = rng.choice(("iqm", "mean", "low", "high"))
    value = rng.choice((stated[name][key] + rng.choice((1e-4, 0.01, 0.5)), 1.0, None, "1"))
    stated[name][key] = value if value != stated[name][key] else 2.0
    if rng.random() < 0.2:
        del stated[name]
    return replace(submission, scores=stated)


def other_split(rng: random.Random, submission: Submission) -> Submission:
    """State another mode or budget than the track has."""
    field = rng.choice(("mode", "budget"))
    return replace(submission, **{field: rng.choice(("training", "planning", "", "1g", "state "))})


def other_track(rng: random.Random, submission: Submission) -> Submission:
    """State the levels of another track."""
    names = [name for name in TRACK_NAMES if name != submission.track]
    return replace(submission, track=rng.choice(names), scores=_scores(submission))


def run_twice(rng: random.Random, submission: Submission) -> Submission:
    """Add a run again, under its seed or another."""
    run = rng.choice(submission.runs)
    return replace(submission, runs=(*submission.runs, replace(run, seed=rng.choice((run.seed, run.seed + 5)))))


def without_runs(rng: random.Random, submission: Submission) -> Submission:
    """Keep the best run, and the scores of both."""
    return replace(submission, runs=submission.runs[:1], scores=_scores(submission))


def without_probable(rng: random.Random, submission: Submission) -> Submission:
    """Leave the most probable episodes out of one run."""
    runs = list(complete().runs)
    place = rng.randrange(len(runs))
    runs[place] = replace(runs[place], probable=None)
    return replace(submission, runs=tuple(runs))


_FORGERIES = (
    other_level, shorter, fewer_frames, longer, dropped, repeated, won, other_action, other_mark, other_seed,
    more_training,
)  # fmt: skip
_EDITS = (other_scores, other_split, other_track, run_twice, without_runs, without_probable)


def read(data: bytes) -> None:
    found = verify(data)
    if not found.accepted:
        raise FormatError(SOURCE, "submission", "none that contradicts itself", found.faults[0][:300])
    if _proof(read_submission(data)) not in map(_proof, (honest(), complete())):
        raise AssertionError("a forged submission was accepted")


def _proof(submission: Submission) -> bytes:
    """Return what a submission states without its claims, as bytes."""
    runs = tuple(replace(run.claiming({}), curve=None, policy=None) for run in submission.runs)
    claims = {"mode": "state", "budget": "4m", "title": "", "command": "", "versions": {}}
    return write_submission(replace(submission, runs=runs, **claims))


TARGETS = (Target("submission", submissions, forged, read, (FormatError,)),)
