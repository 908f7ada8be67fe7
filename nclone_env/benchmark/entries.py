"""Runs of a submission: baselines, folders of training runs, and recordings.

A baseline plays a track with one seed, and trains for it if it learns.
"""

from __future__ import annotations

import csv
import io
import itertools
import shlex
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from nclone_env._files import open_regular
from nclone_env._processes import in_order, is_unwanted, threads
from nclone_env.benchmark.attempts import Run
from nclone_env.benchmark.evaluation import Episodes, evaluate, run_of
from nclone_env.benchmark.track import MODES, Track, track_levels, training_levels
from nclone_env.config import EnvironmentConfig, ObservationName
from nclone_env.errors import ConfigError, FormatError, StoppedError, check_choice, plain, shortened
from nclone_env.game import ACTION_OF_INPUT, DEAD, NUM_ACTIONS
from nclone_env.generate import CollectionFiles, entry_of, generated_levels, write_collection
from nclone_env.level import Level, pack
from nclone_env.machine import default_workers
from nclone_env.obs import GAME_STATE, columns
from nclone_env.plan import MEMORY, solve
from nclone_env.replay import Recording, load_any_recording, recording_name
from nclone_env.sim import simulate
from nclone_env.train import (
    SILENT,
    Hooks,
    TrainConfig,
    level_digests,
    load_policy,
    policy_file,
    recorded_solutions,
    train,
    training_seconds,
)

_AT = columns(GAME_STATE)
_ASIDE, _UP = 0.1, -0.35
_LEVELS, _CLONED_LEVELS = 1000, 256
"""Of the generator: to train on, and to clone; demonstrations of the planner on so many take some minutes."""
_MOST_CURVE, _MOST_ROWS = 1 << 24, 1 << 17
"""Bytes and updates of a learning curve: the time is that of these."""
_SHARE = 0.98
"""Of a budget of frames: a search ends with the trial that spends it, a few thousand frames later."""


@dataclass(frozen=True)
class Order:
    """What a baseline is to play."""

    baseline: str
    track: Track
    mode: str
    budget: str
    seed: int
    packs: Mapping[str, Path]
    output: Path
    """Folder of training runs."""
    hooks: Hooks = SILENT
    with_policy: bool = True
    """Include the policy that was trained."""
    steps: int | None = None
    """Environment steps of training; None: those of the budget."""

    def __post_init__(self) -> None:
        check_choice("baseline", self.baseline, _BASELINES)
        if self.steps is not None and self.baseline != "ppo":
            got = f"{self.steps:,}; leave --steps out"
            raise ConfigError(f"steps: expected none for the baseline {self.baseline}, got {got}")

    def play(self, hooks: Hooks) -> Run:
        """Let the baseline play, and train for it if it learns."""
        return _BASELINES[self.baseline](replace(self, hooks=hooks))


class RandomPolicy:
    """Chooses each action with equal probability."""

    def reset(self, seed: int) -> None:
        """Begin a sequence of random numbers."""
        self._random = np.random.default_rng(seed)

    def __call__(self, observations: Mapping[str, np.ndarray]) -> np.ndarray:
        """Return actions (n,) for n observations."""
        return self._random.integers(NUM_ACTIONS, size=len(next(iter(observations.values()))))


def nearest_exit(observations: Mapping[str, np.ndarray]) -> np.ndarray:
    """Return actions (n,) that follow the shortest path to the objective, and jump where it leads up."""
    state = observations["game_state"]
    right, down = state[:, _AT.path_direction_x], state[:, _AT.path_direction_y]
    direction = np.where(right > _ASIDE, 2, np.where(right < -_ASIDE, 1, 0))
    ahead = np.where(right > 0, state[:, _AT.clearance_right], state[:, _AT.clearance_left])
    up = (down < _UP) | ((ahead == 0) & (direction > 0))
    can_press = (state[:, _AT.airborne] > 0) | (state[:, _AT.jump_held] == 0)
    return 3 * (up & can_press) + direction


def _untrained(policy: Any, order: Order, name: ObservationName) -> Run:
    """Play a function of one observation."""
    seen = EnvironmentConfig(observations=(name,))
    run = evaluate(
        policy, order.track, order.mode, seed=order.seed, environment=seen, packs=order.packs, hooks=order.hooks
    )
    return run.claiming({"steps": 0, "seconds": 0})


def play_ppo(order: Order) -> Run:
    """Train the PPO of this package and play its policy."""
    most = order.track.budgets[order.budget].get("steps")
    if most is None:
        raise ConfigError(f"budget: expected one in steps for the baseline ppo, got {order.budget}")
    steps = most if order.steps is None else order.steps
    config = _config(order, {})
    if not config.batch_size <= steps <= most:
        raise ConfigError(f"steps: expected {config.batch_size:,} to {most:,} for {order.budget}, got {steps:,}")
    if order.track.source in _FROM_GENERATOR:
        files = _generated(order, _LEVELS)
        solutions = tuple(map(str, files.recordings(range(_LEVELS))))
        config = config.replace(levels=(str(files.pack),), starts=solutions)
    result = train(config.replace(total_timesteps=steps - steps % config.batch_size), order.hooks)
    if result.interrupted and order.hooks.stop():
        done = f"training is saved after {result.counters.timesteps:,} timesteps"
        resume = f"nclone-env train {shlex.join(['--resume', str(result.checkpoint.parent)])}, then "
        raise StoppedError(f"{done}; continue with {resume}{_submit(result.checkpoint.parent, order)}")
    return _of_run(result.checkpoint, order)


def _of_run(checkpoint: Path, order: Order) -> Run:
    """Evaluate the policy of a training run with the seed of the run."""
    entered = Entered(checkpoint, order.track, order.mode, order.packs)
    tasks = entered.episodes.tasks
    with threads(default_workers(len(tasks))) as executor:
        try:
            return entered.run(in_order(tasks, executor), order.with_policy, order.hooks)
        except StoppedError as error:
            raise StoppedError(f"the policy is trained; continue with {_submit(checkpoint.parent, order)}") from error


def _submit(folder: Path, order: Order) -> str:
    """Return the command that submits a folder of training, or of recordings."""
    options = {"--track": order.track.name, "--mode": order.mode, "--budget": order.budget, "--title": order.baseline}
    packs = ["--packs", *(f"{name}={path}" for name, path in order.packs.items())] if order.packs else []
    words = ["nclone-env", "benchmark", "submit", str(folder), *itertools.chain(*options.items()), *packs]
    return shlex.join(words)


def _config(order: Order, options: Mapping[str, Any]) -> TrainConfig:
    """Return the configuration of a training run for a track, with some options besides those of the track."""
    source, mode = _PPO[order.track.source], _MODES[order.mode]
    packs = {"levels": training_levels(order.track, order.packs)} if order.track.source == "packs" else {}
    repeats = {"action_repeat_probability": order.track.action_repeat_probability}
    given = {**source, **mode, **packs, **repeats, **options}
    return TrainConfig.of(**given, seed=order.seed, output=order.output)


def _generated(order: Order, count: int) -> CollectionFiles:
    """Return a pack of training levels of the generator, with the seed of the run; make it if there is none."""
    files = CollectionFiles(order.output / f"generated-seed{order.seed}-{count}.txt")
    if not files.pack.exists():
        entries = []  # written once all are made: a pack with fewer would pass for the whole
        for place, made in enumerate(itertools.islice(generated_levels(seed=order.seed), count)):
            entries.append(entry_of(made, place))
            order.hooks.level("levels generated", place + 1, count)
        order.output.mkdir(parents=True, exist_ok=True)
        write_collection(files, iter(entries))
    return files


_MODES: Mapping[str, Mapping[str, Any]] = {
    "state": {},
    "look-ahead": {"observations": ("game_state", "action_outcomes")},
    "pixels": {"observations": ("player_frame", "global_view"), "picture_size": 64, "frame_stack": 2},
}
_OF_MANY_LEVELS: Mapping[str, Any] = {
    "observations": ("game_state", "locals"),
    "locals_planes": 3,
    "locals_size": 9,
    "local_position": True,
    "paths": "doors",
    "starts": ("planned",),
    "max_frames": 2400,
    "shared_trunk": False,
    "hidden_size": 96,
    "update_epochs": 3,
}
_PPO: Mapping[str, Mapping[str, Any]] = {
    "builtin": {"levels": ("first-steps", "jumps", "hazards"), "observations": ("game_state",)},
    "generated": _OF_MANY_LEVELS,
    "packs": _OF_MANY_LEVELS,
    "digests": _OF_MANY_LEVELS,
}
_FROM_GENERATOR = ("generated", "digests")
"""Sources of tracks whose baselines are trained on levels of the generator."""


def play_clone(order: Order) -> Run:
    """Clone solutions of the planner on training levels, without any update of PPO after, and play the clone."""
    if "seconds" not in order.track.budgets[order.budget]:
        raise ConfigError(f"budget: expected one in seconds for the baseline clone, got {order.budget}")
    cloned: list[Any] = []
    hooks = replace(order.hooks, on_warm_start=cloned.append, stop=lambda: bool(cloned) or order.hooks.stop())
    options: dict[str, Any] = {"warm_start": ("planned",), "starts": ()}
    if order.track.source in _FROM_GENERATOR:
        options["levels"] = (str(_generated(order, _CLONED_LEVELS).pack),)
    began = time.process_time()
    checkpoint = train(_config(order, options), hooks).checkpoint
    seconds = round(time.process_time() - began, 1)
    run = _of_run(checkpoint, order)
    return run.claiming({**run.claimed, "seconds": seconds, "demonstrations": len(cloned[0].demonstrated.sources)})


def play_planner(order: Order) -> Run:
    """Search on each level with so many simulated frames as the budget allows."""
    frames = order.track.budgets[order.budget].get("frames")
    if frames is None:
        raise ConfigError(f"track: expected Planning-v1 for the baseline planner, got {order.track.name}")
    levels, found, simulated = track_levels(order.track, order.packs), [], []
    began = time.process_time()
    search = partial(
        solve, frames=_SHARE * frames, seed=order.seed, max_frames=order.track.max_frames, stop=is_unwanted
    )
    with threads(default_workers(len(levels), MEMORY)) as executor:
        for solution in in_order((partial(search, level) for level in levels), executor):
            found.append(solution.inputs)
            simulated.append(solution.simulated)
            order.hooks.on_level("levels searched", len(found), len(levels))
            if order.hooks.stop() and len(found) < len(levels):
                raise StoppedError(_kept(order, levels, found))
    claimed = {"frames": max(simulated), "seconds": round(time.process_time() - began, 1), "simulated": simulated}
    return _of_inputs(order.track, levels, order.seed, found).claiming(claimed)


def _kept(order: Order, levels: Sequence[Level], found: Sequence[np.ndarray]) -> str:
    """Write the solutions of the first levels as recordings; return where they are, and what submits them."""
    solved = [(place, *pair) for place, pair in enumerate(zip(levels, found)) if len(pair[1])]
    if not solved:
        return f"none of {len(found)} levels is solved"
    name = f"{order.track.name}-{order.baseline}-seed{order.seed}"
    numbered = itertools.chain([name], (f"{name}-{number}" for number in itertools.count(2)))
    folder = next(path for path in map(order.output.joinpath, numbered) if not path.exists())
    folder.mkdir(parents=True)
    for place, level, inputs in solved:
        recording = Recording.of(level, inputs, {"level": level.name}, order.seed)
        recording.save(folder / recording_name(place, level.name))
    done = f"solutions of {len(solved)} of {len(levels)} levels are in {folder}"
    return f"{done}; {_submit(folder, order)} takes the others as lost"


_BASELINES: Mapping[str, Callable[[Order], Run]] = {
    "ppo": play_ppo,
    "clone": play_clone,
    "random": lambda order: _untrained(RandomPolicy(), order, next(iter(MODES[order.mode]), "game_state")),
    "nearest-exit": lambda order: _untrained(nearest_exit, order, "game_state"),
    "planner": play_planner,
}


class Entered:
    """A training run, or a bundled policy, which is evaluated with the seed of the run.

    Attributes:
        checkpoint: contents of the file of the policy.
        episodes: of the evaluation.
        seed: of the run.
        claimed: steps, seconds and levels of its training.
    """

    def __init__(self, folder: Path, track: Track, mode: str, packs: Mapping[str, Path] | None = None):
        policy = load_policy(folder, levels=("first-steps",))
        config = policy.config
        held_out = {level.digest for level in track.levels} if track.source != "builtin" else set()
        held_out |= track.reserved
        # Bundled policies name the generator's train split, of which no level is on a track.
        trained = [name for name in config.environment.levels if name != "generated"]
        seen = held_out.intersection(digest[:16] for digest in level_digests(trained))
        if seen:
            of = f"{track.name} or its packs" if track.reserved else track.name
            got = f"{folder}: {shortened(sorted(seen), 200)}"
            raise ConfigError(f"runs: expected a policy that was not trained on levels of {of}, got {got}")
        self.seed = config.seed
        self.episodes = Episodes(policy, track, mode, self.seed, packs=packs)
        file = policy_file(folder)
        self.checkpoint = file.read_bytes()
        curve = file.with_name("learning_curve.csv")
        text, seconds = read_curve(curve) if curve.exists() else (None, None)
        steps, levels = policy.checkpoint.counters["timesteps"], list(config.environment.levels)
        self._curve = text
        self.claimed = {"steps": steps, "seconds": seconds, "levels": levels}

    def run(
        self, played: Iterable[tuple[np.ndarray, np.ndarray]], with_policy: bool = True, hooks: Hooks = SILENT
    ) -> Run:
        """Return the results of the episodes' tasks as a run; its checkpoint is to reproduce sampled actions."""
        found = self.episodes.run(played, hooks)
        policy = self.checkpoint if with_policy else None
        return Run(self.seed, found.sampled, found.probable, self.claimed, policy, self._curve)


def read_curve(path: Path) -> tuple[bytes, float | None]:
    """Return the contents of a learning curve, and the seconds of training that it tells, None if it does not."""
    with open_regular(path, _MOST_CURVE) as file:
        text = file.read()
    try:
        with np.errstate(all="ignore"):  # of a speed of 0
            seconds = training_seconds(itertools.islice(csv.DictReader(io.StringIO(text.decode())), _MOST_ROWS))
    except (ValueError, TypeError, csv.Error) as error:
        expected = "the table that training wrote; remove the file to submit the run without it"
        raise FormatError(plain(path), "table", expected, plain(shortened(str(error)))) from error
    return text, round(float(seconds[-1]), 1) if len(seconds) and np.isfinite(seconds[-1]) else None


def of_recordings(
    files: Sequence[Path], track: Track, claimed: Mapping[str, Any], packs: Mapping[str, Path] | None = None
) -> Run:
    """Return recordings of a planner or a person as a run; levels without one that wins in time count as lost.

    Each is of a level of the track, which is one of single attempts with inputs for each frame, such as Planning-v1. Of
    several of a level the shortest that wins is taken.
    """
    if (track.attempts, track.frame_skip) != (1, 1):
        raise ConfigError(f"track: expected one for recordings, Planning-v1, got {track.name}; submit folders of runs")
    levels = track_levels(track, packs)
    best = recorded_solutions(levels, map(load_any_recording, files))
    gives_up = len(ACTION_OF_INPUT)  # the least such input
    usable = {name for name, codes in best.items() if 0 < len(codes) <= track.max_frames and codes.max() < gives_up}
    if not usable:
        raise ConfigError(f"runs: expected recordings that complete a level of {track.name}, got none in {len(files)}")
    found = [best[level.name] if level.name in usable else np.zeros(0, np.uint8) for level in levels]
    return _of_inputs(track, levels, 0, found).claiming(claimed)


def _of_inputs(track: Track, levels: Sequence[Level], seed: int, inputs: Sequence[np.ndarray]) -> Run:
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
