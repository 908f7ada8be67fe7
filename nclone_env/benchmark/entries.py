"""Runs of a submission from what is on the disk: folders of training runs, and recordings."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from nclone_env._tasks import in_order
from nclone_env.actions import ACTION_OF_INPUT
from nclone_env.benchmark.attempts import Run
from nclone_env.benchmark.evaluation import Episodes, run_of
from nclone_env.benchmark.track import Track, track_levels
from nclone_env.constants import CELEBRATING, DEAD
from nclone_env.errors import ConfigError
from nclone_env.level import Level, pack
from nclone_env.replay import Recording, load_any_recording
from nclone_env.sim.simulate import simulate
from nclone_env.train import SILENT, Hooks, level_digests, load_policy, policy_file, training_seconds


def of_run(
    folder: Path,
    track: Track,
    mode: str,
    packs: Mapping[str, Path] | None = None,
    with_policy: bool = True,
    hooks: Hooks = SILENT,
) -> Run:
    """Evaluate the policy of a training run with the seed of the run; see :class:`Entered`."""
    entered = Entered(folder, track, mode, packs)
    return entered.run(in_order(entered.episodes.tasks), with_policy, hooks)


class Entered:
    """A training run whose policy is evaluated with the seed of the run.

    Args:
        folder: folder of the run, its checkpoint, or the name of a bundled policy.
        track: the track.
        mode: observations that the policy uses.
        packs: as for ``evaluate``.

    Attributes:
        checkpoint: contents of the file of the policy.
        episodes: of the evaluation.

    Raises:
        CheckpointError: if the policy cannot be read.
        ConfigError: if it was trained on levels of the track that are not for training, or does not fit the track.
    """

    def __init__(self, folder: Path, track: Track, mode: str, packs: Mapping[str, Path] | None = None):
        policy = load_policy(folder, levels=("first-steps",))
        self._config, self._counters = policy.config, policy.checkpoint.counters
        held_out = {level.digest for level in track.levels} if track.source != "builtin" else set()
        seen = held_out.intersection(digest[:16] for digest in level_digests(self._config.fixed_levels))
        if seen:
            raise ConfigError(
                f"runs: expected a policy that was not trained on levels of {track.name}, got {folder}: {seen}"
            )
        self.episodes = Episodes(policy, track, mode, self._config.seed, packs=packs)
        self._file = policy_file(folder)
        self.checkpoint = self._file.read_bytes()

    def run(
        self, played: Iterable[tuple[np.ndarray, np.ndarray]], with_policy: bool = True, hooks: Hooks = SILENT
    ) -> Run:
        """Return the results of the episodes' tasks as a run.

        Args:
            played: the results.
            with_policy: include the checkpoint, so that sampled actions can be reproduced.
            hooks: as for ``evaluate``.
        """
        found = self.episodes.run(played, hooks)
        curve = self._file.with_name("learning_curve.csv")
        text = curve.read_bytes() if curve.exists() else None
        levels = list(self._config.environment.levels)
        claimed = {"steps": self._counters["timesteps"], "seconds": _seconds(text), "levels": levels}
        policy = self.checkpoint if with_policy else None
        return Run(self._config.seed, found.sampled, found.probable, claimed, policy, text)


def _seconds(curve: bytes | None) -> float | None:
    """Return the seconds of training by a learning curve; None without one."""
    seconds = training_seconds(csv.DictReader((curve or b"").decode().splitlines()))
    return round(float(seconds[-1]), 1) if len(seconds) else None


def of_recordings(
    files: Sequence[Path],
    track: Track,
    claimed: Mapping[str, Any],
    packs: Mapping[str, Path] | None = None,
) -> Run:
    """Return recordings of a planner or a person as a run; levels without one that wins in time count as lost.

    Args:
        files: recordings, of a level of the track each; of several of a level the shortest that wins is taken.
        track: a track of single attempts with inputs for each frame, such as Planning-v1.
        claimed: as in ``Run``.
        packs: as for ``evaluate``.

    Raises:
        ConfigError: if the track has no such attempts, or no recording is of one of its levels.
        FormatError: if a file is malformed.
    """
    if (track.attempts, track.frame_skip) != (1, 1):
        raise ConfigError(f"track: expected one for recordings, Planning-v1, got {track.name}; submit folders of runs")
    levels = track_levels(track, packs)
    best: dict[str, np.ndarray] = {}
    for recording in (load_any_recording(file) for file in files):
        inputs, digest = _winning(recording), recording.level.digest
        if 0 < len(inputs) <= track.max_frames and (digest not in best or len(inputs) < len(best[digest])):
            best[digest] = inputs
    found = [best.get(level.raw.digest, np.zeros(0, np.uint8)) for level in levels]
    if not any(map(len, found)):
        raise ConfigError(f"runs: expected recordings that complete a level of {track.name}, got none in {len(files)}")
    return of_inputs(track, levels, 0, found).claiming(claimed)


def of_inputs(track: Track, levels: Sequence[Level], seed: int, inputs: Sequence[np.ndarray]) -> Run:
    """Return a run of the inputs that win on each level; none stands for waiting until the episode is lost."""
    actions = [
        np.array(ACTION_OF_INPUT, np.uint8)[codes] if len(codes) else _waiting(level, track.max_frames)
        for level, codes in zip(levels, inputs, strict=True)
    ]
    return run_of(track, pack(levels), seed, (np.array([*map(len, actions)], np.uint32), np.concatenate(actions)))


def _waiting(level: Level, frames: int) -> np.ndarray:
    """Return the actions of an episode without inputs: some ninjas are killed while they wait."""
    idle = np.zeros(frames, np.uint8)
    deaths = np.flatnonzero(simulate(level.raw, idle).state == DEAD)
    return idle[: deaths[0] + 1] if len(deaths) else idle


def _winning(recording: Recording) -> np.ndarray:
    """Return the inputs of a recording until it wins; none if it does not, or if the player gives up."""
    verdict = recording.verify()
    inputs = recording.inputs[: verdict.end]
    is_won = verdict.agrees and verdict.state == CELEBRATING and not (inputs >= len(ACTION_OF_INPUT)).any()
    return inputs if is_won else inputs[:0]
