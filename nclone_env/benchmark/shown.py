"""The episodes of a submission as recordings, to watch."""

from pathlib import Path

import numpy as np

from nclone_env.benchmark.submission import read_submission
from nclone_env.benchmark.track import load_track, track_levels
from nclone_env.game import INPUT_OF_ACTION
from nclone_env.replay import Recording


def recordings_of(path: Path) -> list[Recording]:
    """Return the fastest win of a submission on each level of its track, or its longest episode there without one."""
    submission = read_submission(path)
    track = load_track(submission.track)
    made = [
        (each.ends.reshape(len(track.levels), -1), each.episodes())
        for run in submission.runs
        for each in (run.sampled, run.probable)
        if each is not None
    ]
    settings = {"frame_skip": track.frame_skip, "agent": submission.title}
    found = []
    for number, level in enumerate(track_levels(track)):
        episodes = (
            (int(end["frames"]), bool(end["won"]), actions)
            for ends, played in made
            for end, actions in zip(ends[number], played[number * ends.shape[1] :])
        )
        frames, _, actions = min(episodes, key=lambda each: (0, each[0]) if each[1] else (1, -each[0]))
        inputs = np.repeat(np.take(INPUT_OF_ACTION, actions), track.frame_skip)[:frames]
        found.append(Recording.of(level, inputs, {**settings, "level": level.name}))
    return found
