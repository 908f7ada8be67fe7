"""What is saved of a run: a checkpoint, with which it ends as it would have without an interruption, and its levels."""

import itertools
import math
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nclone_env._files import unless_it_fails, write_rows
from nclone_env.options import flat
from nclone_env.train.collect.episodes import EpisodeStatistics
from nclone_env.train.collect.held_out import HeldOutLevels
from nclone_env.train.collect.rollout import RolloutStorage
from nclone_env.train.collect.selection import EpisodeSelection
from nclone_env.train.policies.checkpoint import Checkpoint, check_observations, save_checkpoint, translated
from nclone_env.train.policies.device import on_host
from nclone_env.train.ranks import RankError
from nclone_env.train.runs.curve import Rows
from nclone_env.train.runs.run import Counters, Score, TrainingRun
from nclone_env.train.runs.warm_start import reference_state, restore_reference

_LEVEL_COLUMNS = (
    "level", "held_out", "episodes", "success_rate", "mean_return", "mean_frames", "weight", "attempts", "any",
)  # fmt: skip


def save_run(run: TrainingRun, replaces: bool = False) -> None:
    """Write the latest checkpoint, the best one if this is it, and the learning curve, unless they are written.

    Each file is replaced as a whole, so that a process killed at any point leaves a checkpoint to resume from. It may
    be that of another run in the folder, which this one ``replaces``.
    """
    if run.saved == run.counters.updates:
        return
    worlds = _gather_worlds(run)
    if worlds is not None:
        checkpoint = _checkpoint_of(run, *worlds)
        if replaces:
            run.folder.replace_run(lambda path: save_checkpoint(path, checkpoint))
        run.curve.flush()
        reached = score(run.curve.rows)
        if reached is not None and (run.best is None or reached > run.best):
            save_checkpoint(run.folder.best, checkpoint)
            run.best = reached
        save_checkpoint(run.folder.checkpoint, checkpoint)
        run.curve.save_csv()
        with unless_it_fails(run.folder.levels):
            write_level_table(run.folder.levels, run.statistics, run.selection, run.held_out)
    run.saved = run.counters.updates


def score(rows: Rows) -> Score | None:
    """Return the score of a run with such a learning curve, None if too few episodes have ended."""
    if not rows:
        return None
    row = rows[-1]
    values = row["min_success_rate"], row["success_rate"], row["mean_return"]
    return None if any(map(math.isnan, values)) else values


def _checkpoint_of(run: TrainingRun, rows: Mapping[str, np.ndarray], states: Sequence[bytes]) -> Checkpoint:
    """Return the state of a run between two updates, given what :func:`_gather_worlds` returned."""
    statistics, held_out = run.statistics, {}
    if run.held_out is not None:
        held_out = {"digests": list(run.held_out.digests), "results": _tensor(run.held_out.results.view(np.uint8))}
    return Checkpoint(
        train_config=flat(run.config),
        observation_shapes={name: list(shape) for name, shape in run.policy.observation_shapes.items()},
        policy={name: parameter.clone() for name, parameter in run.policy.state_dict().items()},
        optimiser=_tensors(run.learner.state()),
        counters=vars(run.counters).copy(),
        episodes={
            "vector_steps": statistics.vector_steps,
            "counts": _tensor(statistics.counts),
            "recent": _tensor(statistics.recent.view(np.uint8)),
        },
        observations={name: _tensor(array) for name, array in rows.items()},
        environments={
            "snapshots": _tensor(np.frombuffer(b"".join(states), np.uint8)),
            "sizes": torch.tensor([len(state) for state in states]),
        },
        curve=run.curve.rows.state(),
        held_out=held_out,
        selection={
            name: {key: _tensor(array) for key, array in arrays.items()}
            for name, arrays in run.selection.state().items()
        },
        reference=reference_state(run),
    )


def restore_run(run: TrainingRun, checkpoint: Checkpoint) -> None:
    """Continue from a checkpoint; the environments have been reset."""
    check_observations(run.policy.observation_shapes, checkpoint)
    with translated(checkpoint.path):
        run.policy.load_state_dict(checkpoint.policy)
        run.learner.restore(checkpoint.optimiser)
        run.counters = Counters(**checkpoint.counters)
        _restore_episodes(run, checkpoint.episodes)
        _restore_environments(run, checkpoint)
        _restore_held_out(run, checkpoint.held_out)
        run.selection.restore(
            {name: {key: tensor.numpy() for key, tensor in part.items()} for name, part in checkpoint.selection.items()}
        )
        restore_reference(run, checkpoint.reference)
        run.curve.rows = Rows.of(checkpoint.curve, run.config.num_updates)
    if run.curve.rows:  # levels that were exchanged since then may need more
        run.kilobytes_per_environment = run.curve.rows[-1]["kilobytes_per_environment"]


def _restore_episodes(run: TrainingRun, state: dict[str, Any]) -> None:
    run.statistics.vector_steps = state["vector_steps"]
    _copy(run.statistics.counts, state["counts"])
    _copy(run.statistics.recent.view(np.uint8), state["recent"])


def _restore_held_out(run: TrainingRun, state: dict[str, Any]) -> None:
    expected = list(run.held_out.digests) if run.held_out is not None else []
    saved = state.get("digests", [])
    if saved != expected:
        counts = f"{len(saved)} in the checkpoint, {len(expected)} in this run"
        raise ValueError(f"held_out: expected the same held-out levels, got others ({counts})")
    if run.held_out is not None:
        _copy(run.held_out.results.view(np.uint8), state["results"])


def _restore_environments(run: TrainingRun, checkpoint: Checkpoint) -> None:
    sizes, snapshots = checkpoint.environments["sizes"].tolist(), checkpoint.environments["snapshots"].numpy().tobytes()
    if len(sizes) != run.config.num_envs:
        raise ValueError(f"num_envs: expected {len(sizes)}, as when it was saved, got {run.config.num_envs}")
    share = run.ranks.share(run.config.num_envs)
    edges = itertools.pairwise(itertools.accumulate(sizes, initial=0))
    states = itertools.islice((snapshots[first:last] for first, last in edges), share.start, share.stop)
    for collector in run.collectors:
        collector.restore([*itertools.islice(states, collector.envs.num_envs)])
    for name, array in _first_rows(run).items():
        _copy(array[: run.storage.frame_stack], checkpoint.observations[name][:, share.start : share.stop])


def _gather_worlds(run: TrainingRun) -> tuple[dict[str, np.ndarray], list[bytes]] | None:
    """Return what the environments of all ranks need to go on to rank 0, None to the others.

    That are the observations that the next rollout begins with, (k, N, *shape) by name, where episodes start, and the
    states of a policy with memory, (1, N, h); and the snapshot of each environment.
    """
    rows = {name: on_host(array[: run.storage.frame_stack]) for name, array in _first_rows(run).items()}
    states = [state for collector in run.collectors for state in collector.states()]
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
    return joined, [state for part in all_states for state in part]


def _first_rows(run: TrainingRun) -> Mapping[str, np.ndarray | Tensor]:
    """Return the arrays whose first rows a rollout begins with, by their names in checkpoints."""
    storage = run.storage
    states = {}
    if isinstance(storage, RolloutStorage) and run.config.recurrent_size:
        states = {"states": storage.states[:1]}
    return {**storage.observation_arrays, "episode starts": storage.episode_starts, **states}


def _tensors(state: dict[str, Any]) -> dict[str, Any]:
    return {name: _tensor(value) if isinstance(value, np.ndarray) else value for name, value in state.items()}


def _tensor(array: np.ndarray) -> Tensor:
    return torch.from_numpy(array.copy())


def _copy(target: np.ndarray | Tensor, source: Tensor) -> None:
    if tuple(target.shape) != tuple(source.shape):
        raise ValueError(f"expected shape {tuple(target.shape)}, got {tuple(source.shape)}")
    if isinstance(target, Tensor):
        target.copy_(source)
    else:
        target[...] = source.numpy()


def write_level_table(
    path: Path, statistics: EpisodeStatistics, selection: EpisodeSelection, held_out: HeldOutLevels | None
) -> None:
    """Write what was measured on each level, training levels first, as CSV; what is unknown is left empty."""
    rows = (*_training_rows(statistics, selection), *(_held_out_rows(held_out) if held_out else ()))
    write_rows(path, (_LEVEL_COLUMNS, *(map(_cell, row) for row in rows)))


def _training_rows(statistics: EpisodeStatistics, selection: EpisodeSelection) -> Iterator[tuple[Any, ...]]:
    weights = itertools.repeat(None) if selection.weights is None else selection.weights
    means = (statistics.means(name) for name in ("success", "total", "frames"))
    for name, count, *row in zip(statistics.level_names, statistics.counts.tolist(), *means, weights):
        yield name, "no", count, *row, None, None


def _held_out_rows(held_out: HeldOutLevels) -> Iterator[tuple[Any, ...]]:
    for name, (attempts, wins, total, frames) in zip(held_out.level_names, held_out.results.tolist(), strict=True):
        means = (wins / attempts, total, frames) if attempts else (None,) * 3
        yield name, "yes", None, *means, None, *((attempts, "yes" if wins else "no") if attempts else (None,) * 2)


def _cell(value: Any) -> Any:
    if not isinstance(value, float):
        return "" if value is None else value
    return "" if math.isnan(value) else f"{value:.6g}"
