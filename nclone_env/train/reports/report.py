"""Results of runs for people: tables of success rates, also as files."""

import itertools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

import numpy as np

from nclone_env._files import unless_it_fails, write_file, write_rows
from nclone_env._table import table
from nclone_env.config import EnvironmentConfig
from nclone_env.game import CELEBRATING, FRAMES_PER_SECOND
from nclone_env.level import known_solutions_of, load_levels
from nclone_env.replay import Recording, recording_name
from nclone_env.train.collect.evaluate import LevelResult, Mode, best_episode, evaluate, evaluated_run
from nclone_env.train.hooks import SILENT, OnLevel
from nclone_env.train.levels.solutions import sampled
from nclone_env.train.policies.network import ActorCritic

RESULT_COLUMNS = (
    *("timesteps", "level", "mode", "episodes"),
    *("success_rate", "death_rate", "mean_return", "mean_frames", "best_frames"),
)
"""Columns of ``evaluation.csv``: timesteps of training, then fields of a :class:`LevelResult`."""
_EPISODES, _EPISODES_IN_ALL, _LEAST_EPISODES = 100, 10_000, 16
"""By default: of a level; of all levels, so that the evaluation of thousands is no longer than their training; and of a
level where these are too few."""
MOST_LEVELS = _EPISODES_IN_ALL // _LEAST_EPISODES
"""Levels that the evaluation at the end of a run plays at most, if no episodes are given."""


def success_table(
    results: Mapping[Any, Sequence[LevelResult]],
    known_frames: Mapping[str, int],
    attempts: int = 1,
    held_out: Sequence[bool] = (),
) -> str:
    """Format success rates as a text table: one row per level and their mean, one column per mode.

    Further columns are the probability that any of several attempts in the first mode succeeds (of 1: no such column),
    the share of its episodes that end in a death, their mean frames, and the frames of the fastest win and the shortest
    known solution. Levels that were held out in training are marked and have means of their own.
    """
    first, *_ = results.values()
    marks = np.zeros(len(first), np.bool_) if not any(held_out) else np.array(held_out, np.bool_)
    groups = {"mean": np.ones(len(first), np.bool_)}
    if marks.any() and not marks.all():
        groups |= {"mean, trained on": ~marks, "mean, held out": marks}
    any_of = (f"any of {attempts}",) if attempts > 1 else ()
    rows = []
    for same_level, mark in zip(zip(*results.values()), marks):
        wins = [result.best_frames for result in same_level if result.best_frames is not None]
        known = str(known_frames.get(same_level[0].level, "-"))
        frames = (f"{same_level[0].mean_frames:.0f}", str(min(wins, default="-")), known, "held out" if mark else "")
        rows.append((same_level[0].level, *_rates([[result] for result in same_level], attempts), *frames))
    for name, members in groups.items():
        chosen = [list(itertools.compress(each, members)) for each in results.values()]
        rows.append((name, *_rates(chosen, attempts)))
    numbers = (f"{title:>8}" for title in (*results, *any_of, "deaths", "frames", "best win", "known"))
    lines = table(("level", *numbers, ""), rows)
    return "\n".join((*lines, f"{first[0].episodes} episodes per level; deaths and frames of {first[0].mode} ones"))


def _rates(results: Sequence[Sequence[LevelResult]], attempts: int) -> list[str]:
    """Return the cells of the success rate of each mode, then of any attempt and of deaths in the first mode."""
    rates = [mean_success(each) for each in results]
    if attempts > 1:
        rates.append(float(np.mean([result.any_of(attempts) for result in results[0]])))
    rates.append(float(np.mean([result.death_rate for result in results[0]])))
    return [f"{rate:.1%}" for rate in rates]


def default_episodes(levels: int) -> int:
    """Return the number of episodes on each of so many levels that an evaluation plays if none is given."""
    return min(_EPISODES, max(_EPISODES_IN_ALL // levels, _LEAST_EPISODES))


def evaluate_and_report(
    policy: ActorCritic,
    environment: EnvironmentConfig,
    folder: Path,
    episodes: int | None,
    seed: int,
    video: bool,
    attempts: int,
    held_out: Sequence[str],
    timesteps: int | None,
    candidates: int = 1,
    recordings: bool = False,
    most: int | None = None,
    num_threads: int | None = None,
    on_level: OnLevel = SILENT.on_level,
    say: Callable[[str], object] = str,
) -> dict[Mode, tuple[LevelResult, ...]]:
    """Evaluate a policy; save the table of success rates, as text and as CSV, and a video to ``folder``.

    Args:
        episodes: of a level; None: fewer of many levels.
        held_out: digests of the levels that were held out in training.
        timesteps: for which the policy was trained. None: the table of results of its run, which ``compare`` reads,
            stays as it is, because other levels are played, or with ``candidates``.
        recordings: save the fastest win of the policy on each level too.
        most: play so many levels at most, a sample that depends on the levels alone; None: all.
        num_threads: as of ``evaluate``.
        say: told the table, and what was saved, as lines of text.
    """
    every = load_levels(environment.levels)
    levels = every if most is None else sampled(every, most)
    environment = environment.replace(levels=tuple(levels))
    episodes = episodes or default_episodes(len(levels))
    played: dict[str, Any] = {"on_level": on_level, "candidates": candidates, "num_threads": num_threads}
    results: dict[Mode, tuple[LevelResult, ...]] = {
        mode: evaluate(policy, environment, mode, episodes, seed, **played) for mode in get_args(Mode)
    }
    known = {name: len(inputs) for name, inputs in known_solutions_of(levels).items()}
    marks = [level.raw.digest in held_out for level in levels] if held_out else ()
    report = success_table(results, known, min(attempts, episodes), marks)
    if candidates > 1:
        report += f"\nsampled ones are the best of {candidates} candidates of each decision"
    if len(levels) < len(every):
        report += f"\na sample of {len(levels):,} out of {len(every):,} levels; nclone-env evaluate plays all"
    said = [report]
    with unless_it_fails(folder / "evaluation.txt"):
        folder.mkdir(parents=True, exist_ok=True)
        write_file(folder / "evaluation.txt", f"{report}\n".encode())
        said.append(f"saved to {folder}")
    if timesteps is not None:
        with unless_it_fails(folder / "evaluation.csv"):
            write_results(results, timesteps, folder / "evaluation.csv")
    if video:
        with unless_it_fails(folder / "episode.mp4"):
            from nclone_env.replay import run_pictures, write_video  # OpenCV is only needed to draw

            run = evaluated_run(best_episode(results), environment)
            write_video(run_pictures(run), folder / "episode.mp4", FRAMES_PER_SECOND)
    if recordings:
        with unless_it_fails(folder / "recordings"):
            written = write_recordings(results, environment, folder / "recordings")
            said.append(f"{written} recordings in {folder / 'recordings'}, each replayed and verified")
    for text in said:  # last: nothing may be there that reads it
        say(text)
    return results


def write_recordings(
    results: Mapping[Mode, tuple[LevelResult, ...]], environment: EnvironmentConfig, folder: Path
) -> int:
    """Save the fastest win of the policy on each level, named by level and number; return how many there are."""
    written = 0
    for number, level in enumerate(load_levels(environment.levels)):
        wins = [results[mode][number] for mode in ("argmax", "sampled") if results[mode][number].won]
        if wins:
            fastest = min(wins, key=lambda result: len(result.actions))
            folder.mkdir(parents=True, exist_ok=True)
            recording = Recording.of(level, fastest.inputs(environment), {"frame_skip": environment.frame_skip})
            state = recording.verify().state
            if state != CELEBRATING:
                raise RuntimeError(f"recordings: the win on {fastest.level} ends in state {state} when it is replayed")
            recording.save(folder / recording_name(number, fastest.level))
            written += 1
    return written


def mean_success(results: Sequence[LevelResult]) -> float:
    """Return the mean success rate over levels, 0 to 1."""
    return float(np.mean([result.success_rate for result in results]))


def write_results(results: Mapping[Any, Sequence[LevelResult]], timesteps: int, path: Path) -> None:
    """Write success rates after so many timesteps of training as CSV: one row for each mode and level."""
    every = itertools.chain.from_iterable(results.values())
    rows = ((timesteps, *(getattr(result, name) for name in RESULT_COLUMNS[1:])) for result in every)
    write_rows(path, (RESULT_COLUMNS, *rows))
