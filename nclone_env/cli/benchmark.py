"""``nclone-env benchmark`` and ``data``: tracks, submissions that are proved by playing them again, and data sets."""

from __future__ import annotations

import itertools
import os
import shlex
import sys
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from tyro.conf import Positional

from nclone_env._files import expanded, suffix_of, there
from nclone_env._processes import threads
from nclone_env._table import table
from nclone_env.benchmark import TRACK_NAMES, Submission, Track, load_track
from nclone_env.cli.output import check_exists, check_folder, check_free, check_suffix, counted
from nclone_env.cli.progress import LevelProgress, StopRequest, TrainingProgress, say, stop_on_signals
from nclone_env.config import EnvironmentConfig, ObservationName
from nclone_env.errors import ConfigError, StoppedError, check_choice, optional_module, shortened
from nclone_env.jobs import Shard, run
from nclone_env.machine import default_workers
from nclone_env.replay import RECORDING_SUFFIX
from nclone_env.train import Hooks

if TYPE_CHECKING:
    from nclone_env.benchmark import Order, Run, Verification
    from nclone_env.jobs import Evaluating

_STOPPING = "stopping after the batch of episodes, update or level in work; press Ctrl-C again to end at once"
_MODES = Literal["state", "pixels", "look-ahead", "planning"]


def list_tracks() -> int:
    """List the tracks."""
    rows = [
        (track.name, str(len(track.levels)), ", ".join(track.modes), track.title)
        for track in map(load_track, TRACK_NAMES)
    ]
    say(*table(("track", "levels", "modes", "question"), rows))
    return 0


def show_track(track: Positional[str]) -> int:
    """Show a track: its levels, rules and budgets.

    Args:
        track: name of the track.
    """
    found = load_track(track)
    budgets = [
        f"{name} ({', '.join(f'{most:,} {unit}' for unit, most in limits.items())})"
        for name, limits in found.budgets.items()
    ]
    facts = {
        "question": found.title,
        "levels": f"{len(found.levels)} ({found.source})"
        + (f" in {found.bands} bands, {found.pack}" if found.source == "generated" else ""),
        "training": found.training,
        "modes": ", ".join(found.modes),
        "budgets": ", ".join(budgets),
        "episodes": f"{found.attempts} sampled and 1 most probable a level, actions held {found.frame_skip} frames, "
        f"lost after {found.max_frames:,} frames"
        + (f"; {found.action_repeat_probability:.0%} of the steps repeat an action" if found.is_sticky else ""),
        "packs": ", ".join(f"{name} with SHA-256 {digest}" for name, digest in found.packs.items())
        or (f"{', '.join(found.parts)}, in any files of --packs FOLDER" if found.authors else "none"),
        "digest": found.digest,
    }
    say(*(f"{name:<9} {text}" for name, text in facts.items()))
    return 0


def run_baseline(
    track: Positional[str],
    mode: _MODES | None = None,
    budget: str | None = None,
    seed: tuple[int, ...] = (0,),
    baseline: str = "ppo",
    packs: tuple[str, ...] = (),
    steps: int | None = None,
    with_policy: bool = True,
    runs: Path = Path("runs"),
    output: Path | None = None,
    force: bool = False,
) -> int:
    """Run a baseline on a track, train it if it learns, and write a verified submission.

    Ctrl-C or SIGTERM ends it after the batch of episodes, update or level in work: the submission has the seeds that
    are played, training is saved, and a line says how to continue. The exit status is then 130 or 143.

    Args:
        track: name of the track.
        mode: observations that the policy uses; by default the first of the track.
        budget: what training may take, such as 4m; by default the first of the track.
        seed: seeds, one for each run.
        baseline: ppo, clone, random, nearest-exit or planner.
        packs: for a track of the game, its packs, such as SI=SI.txt; for Community-v1, folders of packs.
        steps: environment steps of training with ppo; by default those of the budget.
        with_policy: include policies that are trained, so that sampled actions can be reproduced.
        runs: folder of training runs.
        output: submission to write; by default named by track, mode and baseline.
        force: overwrite an existing file.
    """
    from nclone_env.benchmark import Order, check_entry

    found = load_track(track)
    chosen, own_mode = _chosen(found, budget, mode)
    if not seed:
        raise ConfigError("seed: expected at least one, got none")
    if len(set(seed)) < len(seed):
        raise ConfigError(f"seed: expected different ones, got {' '.join(map(str, seed))}; name each once")
    target = output or Path(f"{found.name}-{own_mode}-{baseline}.zip")
    orders = [
        Order(baseline, found, own_mode, chosen, one, _packs(packs), runs, with_policy=with_policy, steps=steps)
        for one in seed
    ]
    check_entry(baseline, orders)
    _check_target(target, force)
    with stop_on_signals(_STOPPING) as stop:
        played, said = _played(orders, steps or found.budgets[chosen].get("steps", 1), stop)
        if played:
            Submission(found.name, own_mode, chosen, baseline, tuple(played), _command()).save(target)
        if stop():
            saved = f", saved in {target}" if played else ""
            say("; ".join((f"stopped with {len(played)} of {counted(len(orders), 'seed')} played{saved}", *said)))
            return stop.exit_status
    return _finish(target, packs)


def _played(orders: Sequence[Order], steps: int, stop: StopRequest) -> tuple[list[Run], list[str]]:
    """Return the runs of baselines until the first that is stopped, and what is said of that one."""
    played: list[Run] = []
    for order in orders:
        levels, training = LevelProgress(), TrainingProgress(steps)
        hooks = Hooks(on_stage=levels.stage, on_level=levels.level, on_update=training, stop=stop)
        try:
            played.append(order.play(hooks))
        except StoppedError as error:
            return played, [str(error)]
        finally:
            levels.clear()
        if stop():
            break
    return played, []


def submit_runs(
    runs: Positional[tuple[Path, ...]],
    track: str,
    mode: _MODES | None = None,
    budget: str | None = None,
    title: str = "ppo",
    packs: tuple[str, ...] = (),
    with_policy: bool = True,
    output: Path = Path("result.zip"),
    shard: str | None = None,
    force: bool = False,
) -> int:
    """Evaluate training runs, or take recordings, and write a verified submission.

    Args:
        runs: folders of training runs of different seeds, checkpoints, or names of bundled policies; for Planning-v1
            recordings or their folders.
        track: name of the track.
        mode: observations that the policy uses; by default the first of the track.
        budget: what training was allowed to take, such as 4m; by default the first of the track.
        title: name of the algorithm.
        packs: for a track of the game, its packs, such as SI=SI.txt; for Community-v1, folders of packs.
        with_policy: include the policies, so that sampled actions can be reproduced.
        output: submission to write.
        shard: part I/N of the episodes, such as 1/4, for one of N processes: output is a folder for its journal, a
            restarted shard goes on with it, and 'merge' writes the submission, to be verified. Not for recordings.
        force: overwrite an existing file.
    """
    from nclone_env.jobs import Evaluating

    found = load_track(track)
    chosen, own_mode = _chosen(found, budget, mode)
    if not runs:
        raise ConfigError("runs: expected folders of runs, checkpoints or recordings, got none")
    part = Shard.of(shard)
    if part:
        check_folder("output", output)
    else:
        _check_target(output, force)
    if found.attempts == 1:
        if part:
            raise ConfigError("shard: expected none for recordings, which are only read; leave --shard out")
        played = _of_recordings(runs, found, packs)
        Submission(track, own_mode, chosen, title, (played,), _command()).save(output)
        return _finish(output, packs)
    files = {name: str(path) for name, path in _packs(packs).items()}
    command = "" if part else _command()
    job = Evaluating(tuple(map(str, runs)), track, own_mode, chosen, title, files, with_policy, command)
    _evaluate(job, output, part)
    return 0 if part else _finish(output, packs)


def verify_submissions(files: Positional[tuple[Path, ...]], packs: tuple[str, ...] = (), policies: bool = False) -> int:
    """Play all episodes of submissions again; say what that proves, and what is only claimed.

    Args:
        files: submissions, or folders of them.
        packs: for a track of the game, its packs, such as SI=SI.txt; for Community-v1, folders of packs.
        policies: also let the policies that they include choose the actions again, which takes much longer.
    """
    from nclone_env.benchmark import verify

    refused, progress = 0, LevelProgress()
    files = tuple(_submissions(files))
    for file in files:
        found = verify(file, _packs(packs), policies, Hooks(on_level=progress.level))
        progress.clear()
        say(*_report(str(file), found))
        refused += not found.accepted
    say(f"{counted(len(files), 'submission')}, {refused} refused")
    return int(refused > 0)


def write_table(
    files: Positional[tuple[Path, ...]],
    packs: tuple[str, ...] = (),
    output: Path = Path("results.md"),
    plots: bool = True,
    force: bool = False,
) -> int:
    """Verify submissions and write a page of results, with a plot for each track.

    Args:
        files: submissions, or folders of them; one that is refused is left out.
        packs: for a track of the game, its packs, such as SI=SI.txt; for Community-v1, folders of packs.
        output: Markdown file to write.
        plots: write performance profiles next to it.
        force: overwrite existing files.
    """
    from nclone_env.benchmark import read_submission, verify, write_results

    check_suffix("output", output, ".md")
    check_free(output, force)
    entries, seen = [], dict[bytes, Path]()
    files = tuple(_submissions(files))
    for file in files:
        found = verify(file, _packs(packs))
        same = seen.setdefault(sha256(file.read_bytes()).digest(), file) if found.accepted else file
        fault = found.faults[0] if found.faults else "" if same == file else f"it is a copy of {same}"
        if fault:
            say(f"left out: {file}: {fault}", stream=sys.stderr)
        else:
            entries.append((read_submission(file), found))
    if not entries:
        raise ConfigError("files: expected at least one submission that is accepted, got none")
    tracks = {submission.track for submission, _ in entries} if plots else ()
    for name in tracks:
        check_free(output.with_name(f"{output.stem}-{name.lower()}.png"), force)
    write_results(entries, output, plots)
    say(f"wrote {output}, {counted(len(entries), 'submission')}")
    return int(len(entries) < len(files))


def export_data(
    sources: Positional[tuple[str, ...]],
    name: str,
    observations: tuple[ObservationName, ...] = ("game_state",),
    max_frames: int = 1200,
    packs: tuple[str, ...] = (),
) -> int:
    """Write episodes as a data set of Minari, with observations computed from their actions.

    Args:
        sources: submissions to the benchmark (.zip), all attempts of which are taken; recordings, their folders, and
            names of built-in levels or sets, whose known solutions are taken.
        name: name of the data set, such as nplusplus/builtin-expert-v0.
        observations: observations of each step.
        max_frames: frames after which an episode is lost; for submissions those of the track.
        packs: for a track of the game, its packs, such as SI=SI.txt; for Community-v1, folders of packs.
    """
    from nclone_env.benchmark import export_dataset, played

    optional_module("minari", "minari")
    config = EnvironmentConfig(observations=observations, max_frames=max_frames)
    files: list[str] = []
    for source in sources:
        folder = expanded(source)
        files += map(str, _named(folder, RECORDING_SUFFIX)) if there(folder.is_dir) else [source]
    found = played(files, config, _packs(packs))
    for source, reason in found.skipped.items():
        say(f"left out: {source}: {reason}", stream=sys.stderr)
    progress = LevelProgress()
    made = export_dataset(name, found, f"Episodes of {', '.join(sources)}", Hooks(on_level=progress.level))
    progress.clear()
    scores = made.storage.metadata
    say(
        f"wrote {name}: {counted(made.total_episodes, 'episode')}, {counted(made.total_steps, 'step')}, returns of "
        f"random play {scores['ref_min_score']:.2f}, of the best {scores['ref_max_score']:.2f}",
        f'load it with minari.load_dataset("{name}")',
    )
    return 0


def _chosen(track: Track, budget: str | None, mode: str | None) -> tuple[str, str]:
    """Return budget and mode, by default the first of the track."""
    chosen, own_mode = next(iter(track.budgets)) if budget is None else budget, mode or track.modes[0]
    check_choice("budget", chosen, track.budgets)
    check_choice("mode", own_mode, track.modes)
    return chosen, own_mode


def _check_target(path: Path, force: bool) -> None:
    check_suffix("output", path, ".zip")
    check_free(path, force)


def _packs(given: Sequence[str]) -> dict[str, Path]:
    """Return packs by name, from words NAME=FILE; a word without a mark names itself, as a folder of packs does."""
    pairs = [text.partition("=") for text in given]
    for text, (name, mark, path) in zip(given, pairs):
        if not name or (mark and not path):
            expected = "NAME=FILE such as SI=SI.txt, or for Community-v1 a folder of packs"
            raise ConfigError(f"packs: expected {expected}, got {text!r}")
        check_exists("packs", expanded(path or name), "a pack")
    return {name: expanded(path or name) for name, _, path in pairs}


def _submissions(paths: Sequence[Path]) -> list[Path]:
    """Return files, each once, and those in folders that have the name of a submission."""
    for path in paths:
        check_exists("files", path, "a submission")
    found = [file for path in paths for file in (_named(path, ".zip") if path.is_dir() else [path])]
    if not found:
        got = f"{shortened(str(paths[0]), 200)}, where no name ends in .zip" if paths else "none"
        raise ConfigError(f"files: expected at least one submission or a folder of them, got {got}")
    return list({os.path.realpath(file): file for file in reversed(found)}.values())[::-1]


def _named(folder: Path, suffix: str) -> list[Path]:
    """Return the files in a folder, and in those in it, that have a suffix."""
    return sorted(file for file in folder.rglob("*") if suffix_of(file) == suffix and file.is_file())


def _evaluate(job: Evaluating, output: Path, part: Shard | None) -> None:
    """Play the episodes of a job, or a part of them."""
    total = len(job.numbers(part))
    progress, done = LevelProgress(), itertools.count(1)

    def show(_: Any) -> None:
        progress.level("batches of episodes played", next(done), total)

    with threads(default_workers(total)) as executor:
        run(job, output, executor, show, shard=part)
    progress.clear()
    if part:
        say(f"{total} of {job.total} batches of episodes are played; journal {part.file} in {output}")


def _of_recordings(paths: Sequence[Path], track: Track, packs: Sequence[str]) -> Run:
    from nclone_env.benchmark import of_recordings

    for path in paths:
        check_exists("runs", path, "a recording")
    files = [file for path in paths for file in (_named(path, RECORDING_SUFFIX) if path.is_dir() else [path])]
    return of_recordings(files, track, {"frames": 0}, _packs(packs))


def _finish(target: Path, packs: Sequence[str]) -> int:
    """Verify a submission that was saved, and print its row."""
    from nclone_env.benchmark import verify

    found = verify(target, _packs(packs))
    say(*_report(str(target), found))
    return int(not found.accepted)


def _report(name: str, found: Verification) -> list[str]:
    lines = [f"{name}: {'accepted' if found.accepted else 'refused'}"]
    lines += [f"  fault    {text}" for text in found.faults]
    lines += [f"  proved   {text}" for text in found.proved if found.accepted]
    lines += [f"  claimed  {text}" for text in found.claimed if found.accepted]
    interval = f"95 % interval of the mean over {found.authors} authors" if found.authors else "95 % interval"
    for measure, score in found.scores.items() if found.accepted else ():
        between = f", {interval} {score.low:.1%} to {score.high:.1%}" if score.low is not None and score.high else ""
        lines.append(f"  {measure:<8} {score.iqm:.1%} (interquartile mean), {score.mean:.1%} (mean){between}")
    if found.episodes:
        lines.append(f"  {found.episodes:,} episodes, {found.frames:,} frames replayed in {found.seconds:.2f} s")
    return lines


def _command() -> str:
    """Return the command line, as a reader would type it."""
    return shlex.join(["nclone-env", *sys.argv[1:]])
