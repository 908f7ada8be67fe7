"""``nclone-env watch``: watch policies and recordings in a window, or write them as a video."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from tyro.conf import Positional

from nclone_env._files import open_regular, suffix_of, there
from nclone_env.cli.output import check_free, check_suffix
from nclone_env.cli.progress import say
from nclone_env.cli.replay import check_scale
from nclone_env.config import EnvironmentConfig, Theme
from nclone_env.env import playable_levels
from nclone_env.errors import ConfigError, NcloneError, check_integer, did_you_mean, shortened
from nclone_env.game import CELEBRATING, DEAD, FRAMES_PER_SECOND, INPUT_OF_ACTION, NUM_ACTIONS
from nclone_env.level import appearance, read_bytes
from nclone_env.replay import (
    VIDEO_SUFFIXES,
    WatchedRun,
    frame_rate,
    is_any_recording,
    load_any_recording,
    named_level,
    recording_files,
    shown_name,
    write_video,
)
from nclone_env.sim import simulate
from nclone_env.train import LATEST, bundled_names, is_named, other_kind

_ZIP_MAGIC = b"PK\x03\x04"
_HOLD = FRAMES_PER_SECOND  # frames for which the end of a run stays
Rounds = Callable[[int], list[WatchedRun]]
"""Number of a round to its runs."""


def watch_runs(
    sources: Positional[tuple[Path, ...]],
    levels: tuple[str, ...] = (),
    argmax: bool = False,
    candidates: int = 1,
    views: int = 9,
    seed: int = 0,
    scale: float = 1.0,
    theme: Theme = "light",
    live: bool = False,
    output: Path | None = None,
    force: bool = False,
) -> int:
    """Watch policies and recordings, several at once, at 60 frames per second until Esc or the window is closed.

    A policy plays episode after episode on each of its levels. Of several sources each has columns of its own, and a
    letter.

    Args:
        sources: checkpoints, folders of runs (their latest checkpoint), names of bundled policies
            (``nclone-env policies list``), recordings, submissions of the benchmark (on each level the fastest win,
            else the longest episode), folders of both, or models of Stable-Baselines3, of which loading executes code.
        levels: levels that policies play; by default those of their runs.
        argmax: take the most probable action instead of a sampled one.
        candidates: play so many candidates of the next 256 frames in copies of the environment, with sampled actions,
            and take the best; 1: none.
        views: most runs shown at once.
        seed: seed of sampled actions.
        scale: size of the picture; at 1 it is about 1056 pixels wide.
        theme: colours, light or dark.
        live: read a checkpoint again when its run has written it, for the next episodes.
        output: .mp4, .webm or .gif file to write instead of opening a window: one episode on each level, and each
            recording once.
        force: overwrite an existing file.
    """
    if not sources:
        raise ConfigError("sources: expected at least one checkpoint, folder of a run, policy or recording, got none")
    check_scale(scale)
    check_integer("views", views, low=1, high=64)
    check_integer("seed", seed, low=0)
    if output is not None:
        check_suffix("output", output, *VIDEO_SUFFIXES)
        check_free(output, force)
    if live and output is not None:
        raise ConfigError("live: expected without --output, got both; a video shows one checkpoint")
    if argmax and candidates > 1:
        raise ConfigError(f"candidates: expected 1 with --argmax, which samples none, got {candidates}")
    sources_runs = _rounds(sources, levels, "argmax" if argmax else "sampled", seed, live, candidates)
    shown = Views(sources_runs, views)
    if output is None:
        show(shown, scale, theme, len(sources))
        return 0
    from nclone_env.replay import arranged, grid_pictures  # OpenCV is only needed to draw

    grid = arranged(shown.levels, scale, len(sources))
    rate = frame_rate(output)
    pictures = grid_pictures(shown.runs(endless=False), grid, _HOLD, theme)
    count = write_video(itertools.islice(pictures, 0, None, FRAMES_PER_SECOND // rate), output, rate)
    say(f"wrote {output} ({count / rate:.1f} s)")
    return 0


def show(shown: Views, scale: float = 1.0, theme: Theme = "light", sources: int = 1) -> None:
    """Show round after round in a window."""
    from nclone_env.replay import arranged, grid_pictures, show

    grid = arranged(shown.levels, scale, sources)
    show(grid_pictures(shown.runs(endless=True), grid, _HOLD, theme), "nclone-env watch", grid.size)


class Views:
    """What each view shows: a run of its own in every round, or the next one of a source where there are more runs.

    Args:
        rounds: makes the runs of each source.
        views: most of them.

    Attributes:
        levels: the levels that each view may show.
    """

    def __init__(self, rounds: Sequence[Rounds], views: int):
        if views < len(rounds):  # the runs of a round of all sources, one source after another
            sources = tuple(rounds)
            rounds = [lambda number: [run for make in sources for run in make(number)]]
        self._rounds, self._first = rounds, [make(0) for make in rounds]
        rows = max(map(len, self._first))
        of_sources = [
            (number, row) for row in range(rows) for number, runs in enumerate(self._first) if row < len(runs)
        ]
        self._own = len(of_sources) <= views
        self._places = of_sources[:views]
        self.levels = [
            [self._first[number][row].level] if self._own else [run.level for run in self._first[number]]
            for number, row in self._places
        ]

    def runs(self, endless: bool) -> list[Iterator[WatchedRun]]:
        """Return the runs of round after round, by view, or those of the first round."""
        if self._own:
            return [self._row(number, row, endless) for number, row in self._places]
        each = [itertools.chain.from_iterable(self._rounds_of(number, endless)) for number in range(len(self._rounds))]
        return [each[number] for number, _ in self._places]

    def _row(self, number: int, row: int, endless: bool) -> Iterator[WatchedRun]:
        """Yield the runs of a row; of a source that has become one of other levels, as a live one may, all in turn."""
        for count, runs in enumerate(self._rounds_of(number, endless)):
            yield runs[(row + count * len(self._first[number])) % len(runs)]

    def _rounds_of(self, number: int, endless: bool) -> Iterator[list[WatchedRun]]:
        """Yield the runs of each round of a source."""
        yield self._first[number]
        yield from map(self._rounds[number], itertools.count(1) if endless else ())


def _rounds(
    sources: tuple[Path, ...], levels: tuple[str, ...], mode: Any, seed: int, live: bool, candidates: int = 1
) -> list[Rounds]:
    """Read the sources; return what makes the runs of a round of each."""
    names = (chr(ord("A") + number) if number < 26 else str(number + 1) for number in range(len(sources)))
    labels = [f"{name}  " if len(sources) > 1 else "" for name in names]
    makers = [
        _policy_maker(path, levels, mode, seed, label, live, candidates) if _is_policy(path) else _replayed(path, label)
        for path, label in zip(sources, labels, strict=True)
    ]
    if levels and not any(map(_is_policy, sources)):
        raise ConfigError(f"levels: expected none for recordings, which have a level of their own, got {levels}")
    for path, label in zip(sources, labels, strict=True):
        if label:
            say(f"{label}{path}")
    return makers


def _is_policy(path: Path) -> bool:
    if is_named(path):
        return True
    if there(path.is_dir):
        return there((path / LATEST).exists) or not played_files(path)
    try:
        with open_regular(path) as file:
            is_zip = file.read(len(_ZIP_MAGIC)) == _ZIP_MAGIC
        return is_zip and other_kind(path) != "submission"
    except OSError as error:
        known = bundled_names()
        expected = f"expected a checkpoint, the folder of a run, a recording or a policy ({', '.join(known)})"
        got = f"{shortened(str(path), 200)}: {error.strerror}{did_you_mean(path, known)}"
        raise ConfigError(f"sources: {expected}, got {got}") from error


def played_files(path: Path) -> list[Path]:
    """Return a file, or the recordings and submissions in a folder by name."""
    inside = path.iterdir() if there(path.is_dir) else ()
    submissions = (file for file in inside if suffix_of(file) == ".zip" and other_kind(file) == "submission")
    return sorted([*recording_files(path), *submissions])


def _replayed(path: Path, label: str) -> Rounds:
    if other_kind(path) == "submission":
        from nclone_env.benchmark import recordings_of  # which imports torch

        shown = [(named_level(each), each.inputs.tolist()) for each in recordings_of(path)]
        return lambda number: [WatchedRun(level, inputs, f"{label}{level.name}") for level, inputs in shown]
    files = played_files(path)
    if files != [path]:
        makers = [_replayed(file, label) for file in files]
        return lambda number: [run for make in makers for run in make(number)]
    data = read_bytes(path)
    if not is_any_recording(data):
        expected = "expected a checkpoint, the folder of a run, or a recording (a .replay or an attract file)"
        fix = "name what nclone-env train, play or replay record wrote"
        raise ConfigError(f"sources: {expected}, got {shortened(str(path), 200)}, {appearance(data)}; {fix}")
    recording = load_any_recording(path)
    level = named_level(recording)
    return lambda number: [WatchedRun(level, recording.inputs.tolist(), f"{label}{shown_name(level)}")]


def _policy_maker(
    path: Path, levels: tuple[str, ...], mode: Any, seed: int, label: str, live: bool, candidates: int
) -> Rounds:
    from nclone_env.train import load_policy, policy_file, policy_runs

    if other_kind(path) == "sb3":
        return _sb3_maker(path, levels, mode == "argmax", seed, label, live or candidates > 1)
    file = policy_file(path)
    policy, read = load_policy(path, levels), _written(file)

    def runs(number: int) -> list[WatchedRun]:
        nonlocal policy, read
        if live and _written(file) != read:
            with suppress(NcloneError, OSError):  # not complete, or its levels are not; the next round tries again
                policy, read = load_policy(path, levels), _written(file)
        timesteps = policy.checkpoint.counters.get("timesteps", 0)
        shown = f"{label}{timesteps:,} steps  " if live else label
        return policy_runs(policy.network, policy.environment, mode, seed + number, shown, candidates)

    return runs


def _sb3_maker(path: Path, levels: tuple[str, ...], argmax: bool, seed: int, label: str, has_more: bool) -> Rounds:
    from nclone_env.train import load_model, model_runs

    if has_more:
        raise ConfigError(f"sources: expected a policy of nclone_env with --live or --candidates, got the model {path}")
    model, config = load_model(path, levels)
    return lambda number: model_runs(model, config, argmax, seed + number, label)


def random_runs(config: EnvironmentConfig, steps: int, seed: int) -> list[WatchedRun]:
    """Return an episode of random actions on each level, of so many steps at most."""
    random, runs = np.random.default_rng(seed), []
    for level in playable_levels(config).levels:
        inputs = np.repeat(np.take(INPUT_OF_ACTION, random.integers(NUM_ACTIONS, size=steps)), config.frame_skip)
        ended = np.flatnonzero(np.isin(simulate(level, inputs).state, (DEAD, CELEBRATING)))
        runs.append(WatchedRun(level, inputs[: ended[0] + 1 if len(ended) else None].tolist()))
    return runs


def _written(file: Path) -> int:
    """Return the time at which a file was written, nanoseconds; 0 if there is none."""
    try:
        return file.stat().st_mtime_ns
    except OSError:
        return 0
