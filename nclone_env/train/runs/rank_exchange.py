"""What the ranks of a run tell each other between updates: episodes that ended, and the state of their environments."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from nclone_env.train.ranks import RankError
from nclone_env.train.runs.run import Run


@dataclass(frozen=True)
class Worlds:
    """Everything that the environments of a run need to go on."""

    rows: dict[str, np.ndarray]
    """The observations that the next rollout begins with, (k, N, *shape) by name, where episodes start, and which
    environments have met the current generated levels."""
    states: list[bytes]
    """Snapshot of each environment."""


def ended_episodes(run: Run) -> Iterator[np.ndarray]:
    """Yield the ``FINISHED`` records of all ranks in the rollout just collected, in an order that all ranks share.

    Those of one process are the arrays of its groups. Those of several are one array, sorted by step and environment.
    """
    if run.ranks.count == 1:
        for collector in run.collectors:
            yield collector.episodes.episodes
        return
    records = np.concatenate([collector.episodes.episodes for collector in run.collectors])
    places = np.concatenate([each.episodes.places + np.array([0, each.first], np.int32) for each in run.collectors])
    all_records, all_places = (np.concatenate(column) for column in zip(*run.ranks.exchange((records, places))))
    yield all_records[np.lexsort(all_places.T[::-1])]


def gather_worlds(run: Run) -> Worlds | None:
    """Return the environments of all ranks to rank 0, None to the others.

    Raises:
        RankError: if the parameters of the ranks differ.
    """
    rows = {name: array[: run.storage.frame_stack] for name, array in first_rows(run).items()}
    states = [envs.get_state(i) for envs in (each.envs for each in run.collectors) for i in range(envs.num_envs)]
    parts = run.ranks.gather((zlib.crc32(run.parameters.vector.tobytes()), rows, states))
    if not parts:
        return None
    digests, all_rows, all_states = zip(*parts)
    if len(set(digests)) > 1:
        raise RankError(
            f"update {run.counters.updates}: the parameters of the ranks differ; start all of them with the same "
            "arguments and versions, on processors of the same kind, and resume from the latest checkpoint"
        )
    joined = {name: np.concatenate([part[name] for part in all_rows], axis=1) for name in rows}
    return Worlds(joined, [state for part in all_states for state in part])


def own_part(run: Run, worlds: Worlds) -> Worlds:
    """Return the environments of this rank.

    Raises:
        ValueError: if there are not as many environments as in the run.
    """
    if len(worlds.states) != run.config.num_envs:
        raise ValueError(f"num_envs: expected {len(worlds.states)}, as when it was saved, got {run.config.num_envs}")
    share = run.ranks.share(run.config.num_envs)
    rows = {name: array[:, share.start : share.stop] for name, array in worlds.rows.items()}
    return Worlds(rows, worlds.states[share.start : share.stop])


def first_rows(run: Run) -> Mapping[str, np.ndarray]:
    """Return the arrays whose first rows a rollout begins with, by their names in checkpoints."""
    met = {} if run.stream is None else {"first met": run.stream.first_met}
    return {**run.storage.observation_arrays, "episode starts": run.storage.episode_starts, **met}
