"""Levels that take turns while a run goes on: the next ones are made while it trains on the current ones."""

import itertools
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from nclone_env._processes import Background
from nclone_env.level import Level, RawLevel, load_level, load_levels
from nclone_env.train.config import TrainConfig
from nclone_env.train.hooks import Hooks
from nclone_env.train.levels.solutions import PLANNED, Planner, fixed_solutions
from nclone_env.train.levels.sources import (
    Collection,
    LevelBatch,
    Made,
    Plan,
    held_out_collection,
    held_out_count,
    training_collection,
)
from nclone_env.train.ranks import Ranks

Value = TypeVar("Value")
_PIECE = 8
"""Levels that are asked for at a time in the preparation of a run, so that it can tell how far it is."""


class LevelStream:
    """The levels of a run of which some are generated.

    Batches are exchanged after fixed numbers of updates, and are functions of the plan, so what a run computes does not
    depend on how long they take. An episode ends on the level that it began on, and before the next but one exchange:
    only levels of the current batch and of the one before are ever played.

    Args:
        plan: how the batches are made.
        interval: updates from one exchange to the next.
        updates: updates of the whole run; what would be exchanged after them is not made.
        background: the process that makes the levels, used in rank 0 only; closed with the stream.
        begun: updates before the current batch took its turn.
        current: the batch that episodes begin on.
        previous: levels of the batch before it.

    Attributes:
        plan, current: as given; ``current`` is replaced by each exchange.
        first_met: (1, n) int8; outcome of the first episode of each environment from the start of a level of the batch:
            0 none so far, 1 failure, 2 success.
    """

    def __init__(
        self,
        plan: Plan,
        interval: int,
        updates: int,
        ranks: Ranks,
        background: Background,
        num_envs: int,
        begun: int,
        current: LevelBatch,
        previous: tuple[Made, ...],
    ):
        self.plan, self.current = plan, current
        self._interval, self._updates = interval, updates
        self._ranks, self._background = ranks, background
        self.first_met = np.zeros((1, num_envs), np.int8)
        self._previous, self._begun = previous, begun
        self._waited = 0.0
        self._request_next()

    @property
    def levels(self) -> tuple[Level, ...]:
        """All levels on which an episode may be played now; episodes begin on the first ``plan.in_use``."""
        return self.plan.levels(self.current.made, self._previous)

    def due(self, updates: int) -> bool:
        """Return whether the next batch takes its turn after so many updates."""
        return updates - self._begun >= self._interval

    def ready(self, updates: int, seconds: float) -> bool:
        """Wait some seconds at most for the next batch; return whether nothing has to be waited for any more.

        Rank 0 alone waits here; the others do so in :meth:`advance`.
        """
        if not self.due(updates) or not self._ranks.first:
            return True
        began = time.perf_counter()
        ready = self._background.ready(seconds)
        self._waited += time.perf_counter() - began
        return ready

    def advance(self, updates: int) -> float:
        """Wait for the next batch and make it the current one; return the seconds spent waiting for it.

        Raises:
            BackgroundError: if the process that makes it has ended.
            ConfigError: if there are no more levels.
        """
        began = time.perf_counter()
        following = self._ranks.from_first(self._background.result)
        waited, self._waited = self._waited + time.perf_counter() - began, 0.0
        self._previous, self.current, self._begun = self.current.made, following, updates
        self.first_met[:] = 0
        self._request_next()
        return waited

    def meet(self, environments: np.ndarray, episodes: np.ndarray) -> None:
        """Note the first episodes on the levels of the batch; those that begin in start states are none.

        Given are ``FINISHED`` records in the order in which episodes ended, and the environment of this rank of each.
        """
        levels = episodes["level"]
        first = (levels >= self.plan.kept) & (levels < self.plan.in_use) & (episodes["start"] < 0)
        first &= self.first_met[0, environments] == 0
        chosen, places = np.unique(environments[first], return_index=True)
        self.first_met[0, chosen] = 1 + episodes["success"][first][places]

    def first_success(self) -> float:
        """Return the share of successes among the first episodes on the batch, in all ranks; nan without any."""
        counts = np.sum(self._ranks.exchange(np.bincount(self.first_met[0], minlength=3)), axis=0)
        return float(counts[2] / counts[1:].sum()) if counts[1:].any() else float("nan")

    def state(self) -> dict[str, Any]:
        """Return what a checkpoint keeps: numbers, names, and arrays of levels and proofs."""
        made = (*self.current.made, *self._previous)
        return {
            "begun": self._begun,
            "current": len(self.current.made),
            "numbers": np.array([each.number for each in made], np.int64),
            "names": [each.level.name for each in made],
            "tiles": np.stack([each.level.raw.tiles for each in made]),
            "sizes": np.array([len(each.level.raw.records) for each in made], np.int64),
            "records": np.concatenate([each.level.raw.records for each in made]),
            "lengths": np.array([len(each.inputs) for each in made], np.int64),
            "inputs": np.concatenate([each.inputs for each in made]),
        }

    def close(self) -> None:
        """End the process in the background."""
        self._background.close()

    def _request_next(self) -> None:
        if self._ranks.first and self._begun + self._interval < self._updates:
            self._background.submit(self.plan.batch, self.current.made[-1].number + 1, self.current.made)


def open_stream(
    config: TrainConfig,
    levels: tuple[str, ...],
    held_out: tuple[str, ...],
    planner: Planner,
    ranks: Ranks,
    state: Mapping[str, Any],
) -> tuple[LevelStream, tuple[Level, ...]]:
    """Return the generated levels of a run to train on, and those that it holds out.

    Args:
        levels: fixed levels to train on; there may be none.
        held_out: fixed levels that the run holds out.
        planner: finds solutions of fixed levels; its hooks are called for generated ones too.
        state: of an interrupted run, from :meth:`LevelStream.state`; empty: a new run.

    Raises:
        ConfigError: if no levels can be made, or ``starts`` fit none of the levels.
        ValueError: if the state is damaged.
    """
    fixed, environment = tuple(load_levels(levels)), config.unstacked_environment
    solutions = fixed_solutions(environment, fixed, config.starts, planner)
    plan = Plan(
        collection=training_collection(config, fixed, load_levels(held_out)),
        count=config.generated.count,
        fixed=fixed,
        mirrored=config.environment.mirrored,
        environment=environment,
        along_solutions=bool(config.starts),
        solutions=solutions,
        with_proofs=PLANNED in config.starts,
    )
    with ExitStack() as undone:
        background = undone.enter_context(closing(Background()))
        maker = _FirstLevels(ranks, background, planner.hooks)
        measured = maker.take(held_out_collection(config), held_out_count(config), "held-out levels generated")
        if state:
            made, previous = read_levels(state)
        else:
            made, previous = maker.take(plan.collection, plan.count, "levels generated"), ()
        current = maker.compute(plan.following, made, previous)
        begun = int(state["begun"]) if state else 0
        envs, interval = len(ranks.share(config.num_envs)), config.generated.interval
        stream = LevelStream(plan, interval, config.num_updates, ranks, background, envs, begun, current, previous)
        undone.pop_all()
    return stream, tuple(made.level for made in measured)


@dataclass(frozen=True)
class _FirstLevels:
    """Makes the levels that a run begins with, in the background process of rank 0, and tells how far it is."""

    ranks: Ranks
    background: Background
    hooks: Hooks

    def take(self, collection: Collection, count: int, what: str) -> tuple[Made, ...]:
        """Return the first levels of a collection; errors as :meth:`Collection.take`."""
        made: tuple[Made, ...] = ()
        while len(made) < count:
            first = made[-1].number + 1 if made else 0
            made += self.compute(collection.take, first, min(_PIECE, count - len(made)))
            self.hooks.level(what, len(made), count)
        return made

    def compute(self, function: Callable[..., Value], *args: Any) -> Value:
        """Return what the process computes, in every rank."""
        if self.ranks.first:
            self.background.submit(function, *args)
        return self.ranks.from_first(self.background.result)


def read_levels(state: Mapping[str, Any]) -> tuple[tuple[Made, ...], tuple[Made, ...]]:
    """Return the current and the previous levels of :meth:`LevelStream.state`.

    Raises:
        KeyError, ValueError: if it is damaged.
    """
    inputs = _parts(state["inputs"], state["lengths"])
    raws = zip(state["tiles"], _parts(state["records"], state["sizes"]), strict=True)
    levels = [load_level(RawLevel(tiles, records, source="generated level")).raw for tiles, records in raws]
    named = map(Level, levels, state["names"])
    made = tuple(itertools.starmap(Made, zip(state["numbers"].tolist(), named, inputs, strict=True)))
    return made[: state["current"]], made[state["current"] :]


def _parts(rows: np.ndarray, sizes: np.ndarray) -> list[np.ndarray]:
    """Return the parts of an array that lie one after another."""
    edges = itertools.accumulate(sizes.tolist(), initial=0)
    return [rows[first:last] for first, last in itertools.pairwise(edges)]
