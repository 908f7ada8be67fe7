"""Data sets of Minari: episodes of submissions, recordings and known solutions, observed again from their actions.

An episode is stored with ``options``, the number of its level: the environment that Minari recovers, reset with these,
returns the same observations and rewards for the same actions, bit for bit.
"""

import dataclasses
import shutil
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode

from nclone_env._files import claimed, suffix_of
from nclone_env._processes import check_wanted, in_order, threads
from nclone_env.benchmark.submission import read_submission
from nclone_env.benchmark.track import load_track, track_levels
from nclone_env.config import EnvironmentConfig
from nclone_env.env import ENVIRONMENT_ID, NPlusPlusVectorEnv
from nclone_env.errors import ConfigError, FormatError, checked, optional_module, shortened
from nclone_env.level import Level
from nclone_env.machine import default_workers
from nclone_env.options import several
from nclone_env.train import SILENT, Demonstration, Hooks, held_actions, read_demonstrations, winning_inputs

_MOST_EPISODES, _MOST_BYTES = 256, 1 << 28
"""Of a batch, and of its observations; but at least one episode."""
_RANDOM_EPISODES = 100
"""Whose mean return is the least reference score; the greatest is that of the best episode on each level."""


class Played(NamedTuple):
    """Episodes from the start of their levels.

    Attributes:
        config: the environment, with the levels.
        levels: of each episode, its number in ``config.levels``.
        actions: of each episode, (T,) uint8.
        skipped: why sources are not among them.
    """

    config: EnvironmentConfig
    levels: list[int]
    actions: list[np.ndarray]
    skipped: dict[str, str]


@checked()
def played(
    sources: str | Path | Iterable[str | Path], config: EnvironmentConfig, packs: Mapping[str, Path] | None = None
) -> Played:
    """Return the episodes of sources.

    Args:
        sources: submissions (``.zip``) of one track, of which all sampled attempts are taken; recordings, and names of
            built-in levels or sets, whose known solutions are taken. A recording whose actions are not held for
            ``frame_skip`` frames is followed, as in :func:`nclone_env.train.demonstrate`; one that is damaged or does
            not finish its level is left out.
        config: observations, and the frames of steps and episodes; those of a track take their place.
        packs: for a track of the game, the file of each pack by name; for ``Community-v1``, files or folders of packs.

    Raises:
        ConfigError: if submissions are of several tracks, or nothing is left.
        FormatError: if a submission is malformed.
        UnknownLevelError: if a source is neither a file nor a built-in level.
    """
    sources = several(sources)
    submissions = [read_submission(source) for source in sources if suffix_of(source) == ".zip"]
    names = sorted({submission.track for submission in submissions})
    if len(names) > 1:
        raise ConfigError(f"sources: expected submissions of one track, got {', '.join(names)}")
    levels: list[Level] = []
    found = Played(config, [], [], {})
    for track in map(load_track, names):
        config = config.replace(frame_skip=track.frame_skip, max_frames=track.max_frames)
        levels += track_levels(track, packs)
        for run in (run for submission in submissions for run in submission.runs):
            found.levels.extend(np.arange(len(levels)).repeat(track.attempts).tolist())
            found.actions.extend(run.sampled.episodes())
    numbers = {level.raw.digest: number for number, level in enumerate(levels)}
    for one in _demonstrations(sources, found.skipped):
        inputs = winning_inputs(one.level.raw, one.inputs)
        actions = None if inputs is None else held_actions(one.level, inputs, config.frame_skip)
        if actions is None or len(actions) > config.max_steps:
            found.skipped[one.source] = f"it does not finish its level in {config.max_frames} frames of held actions"
            continue
        number = numbers.setdefault(one.level.raw.digest, len(levels))
        levels += [one.level] if number == len(levels) else []
        found.levels.append(number)
        found.actions.append(actions.astype(np.uint8))
    if not found.levels:
        why = next((f"; {source}: {reason}" for source, reason in found.skipped.items()), "")
        raise ConfigError(f"sources: expected submissions, or recordings that finish their level, got {sources!r}{why}")
    return found._replace(config=config.replace(levels=tuple(levels), action_repeat_probability=0.0))


def _demonstrations(sources: Sequence[str | Path], skipped: dict[str, str]) -> Iterator[Demonstration]:
    """Yield the demonstrations of sources that are no submissions; those that are damaged are noted with the reason."""
    for source in sources:
        try:
            yield from read_demonstrations([source] if suffix_of(source) != ".zip" else [])
        except FormatError as error:
            skipped[str(source)] = f"{error.where}: expected {error.expected}, got {error.got}"


@checked()
def export_dataset(name: str, given: Played, description: str, hooks: Hooks = SILENT) -> Any:
    """Write a data set of Minari, and return it, a ``minari.MinariDataset``.

    Args:
        name: of the data set, such as ``nplusplus/builtin-expert-v0``.
        given: the episodes.
        description: of the data set.
        hooks: ``on_level`` is called after each batch of episodes.

    Raises:
        MissingExtraError: if Minari is not installed.
        ConfigError: if there is such a data set, also one that is being written, or an episode does not end with its
            last action.
    """
    utils, collector = (optional_module(f"minari.{module}", "minari") for module in ("utils", "data_collector"))
    try:
        utils.parse_dataset_id(name)
    except (TypeError, ValueError) as error:
        raise ConfigError(f"name: expected one such as nplusplus/expert-v0, got {shortened(name)}") from error
    path = Path(utils.get_dataset_path(name))
    path.parent.mkdir(parents=True, exist_ok=True)
    with claimed(path):
        if path.exists():
            raise ConfigError(f"name: expected one that is free, got {name}; 'minari delete {name}' deletes it")
        return _written(name, path, given, description, hooks, utils, collector)


def _written(name: str, path: Path, given: Played, description: str, hooks: Hooks, utils: Any, collector: Any) -> Any:
    """Write a data set to its folder, which this call makes, or nothing."""
    fields = {field.name: getattr(given.config, field.name) for field in dataclasses.fields(given.config)}
    best: dict[int, float] = {}
    own = False  # until Minari asks for episodes, another program may have made the folder: only an own one is removed

    def buffers() -> Iterator[Any]:
        nonlocal own
        own = True
        for level, episode in zip(given.levels, observed(given, hooks), strict=True):
            best[level] = max(best.get(level, -np.inf), float(episode["rewards"].sum()))
            yield collector.EpisodeBuffer(options={"level": level}, **episode)

    with closing(gymnasium.make(ENVIRONMENT_ID, **fields)) as env, warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=UserWarning, module="minari")  # about an author, and so on
        try:
            made = utils.create_dataset_from_buffers(
                name, buffers(), env, eval_env=env, description=description, jpeg_encoding=False
            )
            env.action_space.seed(0)
            least = utils.get_average_reference_score(env, lambda _: env.action_space.sample(), _RANDOM_EPISODES)
            scores = {"ref_min_score": least, "ref_max_score": float(np.mean([*best.values()]))}
            made.storage.update_metadata({**scores, "num_episodes_average_score": _RANDOM_EPISODES})
        except BaseException as error:
            if own:
                shutil.rmtree(path, ignore_errors=True)
            elif isinstance(error, ValueError | FileExistsError):
                raise ConfigError(f"name: expected one that is free, got {name}, which appeared just now") from error
            raise
    return made


def observed(given: Played, hooks: Hooks = SILENT) -> Iterator[dict[str, Any]]:
    """Yield the arrays of each episode by name, as Minari stores them; observations are (T + 1, ...)."""
    options: dict[str, Any] = {"autoreset_mode": AutoresetMode.DISABLED, "num_threads": 1}
    with closing(NPlusPlusVectorEnv(given.config, 1, **options)) as env:
        nbytes = sum(array.nbytes for array in env.reset(seed=0)[0].values())
    total, longest = len(given.levels), max(map(len, given.actions))
    size = min(max(_MOST_BYTES // (nbytes * longest), 1), _MOST_EPISODES)
    done = 0

    def play(first: int) -> list[dict[str, Any]]:
        batch = given.actions[first : first + size]
        with closing(NPlusPlusVectorEnv(given.config, len(batch), **options)) as env:
            env.assign_levels(given.levels[first : first + size])
            return list(_play(env, batch, first))

    firsts = range(0, total, size)
    workers = default_workers(len(firsts), 2 * _MOST_BYTES)
    with threads(workers) as executor:
        for episodes in in_order((partial(play, first) for first in firsts), executor, ahead=workers):
            yield from episodes
            done += len(episodes)
            hooks.on_level("episodes observed", done, total)


def _play(env: NPlusPlusVectorEnv, batch: Sequence[np.ndarray], first: int) -> Iterator[dict[str, Any]]:
    """Play a batch of episodes, the first of which has a number."""
    shape = max(map(len, batch)), len(batch)
    seen, _ = env.reset(seed=0)
    rows = {name: np.zeros((shape[0] + 1, *array.shape), array.dtype) for name, array in seen.items()}
    dtypes = {"actions": np.int64, "rewards": np.float64, "terminations": np.bool_, "truncations": np.bool_}
    fields: dict[str, np.ndarray] = {name: np.zeros(shape, dtype) for name, dtype in dtypes.items()}
    for place, own in enumerate(batch):
        fields["actions"][: len(own), place] = own
    for step in range(shape[0] + 1):
        check_wanted()
        for name, array in seen.items():
            rows[name][step] = array
        if step < shape[0]:
            seen, *ends, _ = env.step(fields["actions"][step])
            for name, values in zip([*dtypes][1:], ends, strict=True):
                fields[name][step] = values
    over = fields["terminations"] | fields["truncations"]
    for place, count in enumerate(map(len, batch)):
        if np.flatnonzero(over[:count, place]).tolist() != [count - 1]:
            raise ConfigError(f"sources: expected episodes that end with their last action, unlike {first + place}")
        observations = {name: array[: count + 1, place] for name, array in rows.items()}
        yield {"observations": observations, **{name: array[:count, place] for name, array in fields.items()}}
