"""The levels of a run: those that it trains on, those that measure it, and how they are made or split.

Levels that are made, batch after batch, are those that ``nclone-env levels generate`` makes too, in its order, without
those whose solution takes longer than an episode, or whose contents or name another level of the run has.
"""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from nclone_env.config import EnvironmentConfig
from nclone_env.env import NPlusPlusEnv
from nclone_env.errors import ConfigError
from nclone_env.generate import ATTEMPTS, HELD_OUT_SPLIT, TRAIN_SPLIT, generate_level, read_range
from nclone_env.level import (
    Level,
    LevelRef,
    LevelSource,
    OpenedPacks,
    listed_names,
    load_levels,
    mirrored,
    pack,
    readable,
    resolve,
)
from nclone_env.train.config import TrainConfig
from nclone_env.train.levels.solutions import STATES_PER_LEVEL, StartStates, mirrored_solutions, start_states

MEASURED = 16
"""Held-out generated levels on which a policy is evaluated that was trained with none."""
_MOST_SKETCHES = 4000
"""Sketches that are tried in a row without a usable level: about two minutes."""


@dataclass(frozen=True, eq=False)
class Made:
    """A generated level with its proof."""

    number: int
    """Number of the level in its collection."""
    level: Level
    inputs: np.ndarray
    """(T,) uint8; a solution, one input byte a frame."""


@dataclass(frozen=True, eq=False)
class LevelBatch:
    """The generated levels that a run trains on at a time."""

    made: tuple[Made, ...]
    starts: StartStates | None
    """Where episodes begin along solutions of all levels of the run; None: at the start of their level."""


@dataclass(frozen=True)
class Collection:
    """The levels that a run may use, in their order."""

    families: tuple[str, ...]
    """They take turns."""
    difficulty: tuple[int, int]
    """Least and greatest measured difficulty."""
    max_frames: int
    """Longest proof."""
    seed: int
    split: str
    known: frozenset[str] = frozenset()
    """Digests and names of levels to leave out."""

    def take(self, first: int, count: int) -> tuple[Made, ...]:
        """Make the next levels from number ``first`` on.

        Raises:
            ConfigError: if thousands of sketches give no level that can be used.
        """
        taken: list[Made] = []
        unused = 0
        for number in itertools.count(first):
            if len(taken) == count:
                break
            made, sketches = self._made(number)
            unused = unused + sketches if made is None else 0
            taken += () if made is None else (made,)
            if unused >= _MOST_SKETCHES:
                low, high = self.difficulty
                wanted = f"levels of {', '.join(self.families)} with a difficulty of {low}..{high}"
                raise ConfigError(
                    f"generated_difficulty, max_frames: expected {wanted} with a solution of at most {self.max_frames} "
                    f"frames, got none in {_MOST_SKETCHES:,} sketches; widen the range or raise max_frames"
                )
        return tuple(taken)

    def _made(self, number: int) -> tuple[Made | None, int]:
        """Return a level, None if it cannot be used, and how many sketches were tried for it."""
        family = self.families[number % len(self.families)]
        try:
            made = generate_level(family, self.seed, number, split=self.split, difficulty=self.difficulty)
        except ConfigError:  # none of its sketches has such a difficulty; those of other numbers may
            return None, ATTEMPTS
        marks, sketches = (made.level.raw.digest, made.level.name), 1 + sum(made.rejected.values())
        usable = len(made.inputs) <= self.max_frames and self.known.isdisjoint(marks)
        return Made(number, made.level, made.inputs) if usable else None, sketches


@dataclass(frozen=True, eq=False)
class Plan:
    """How the batches of a run are made; a process in the background follows it."""

    collection: Collection
    count: int
    """Levels of a batch."""
    fixed: tuple[Level, ...]
    """The other levels of the run, which stay."""
    mirrored: bool
    """Whether mirror images of all levels are played too."""
    environment: EnvironmentConfig
    """Of the environments; its levels are replaced."""
    along_solutions: bool
    """Whether episodes begin along solutions."""
    solutions: Mapping[str, np.ndarray]
    """Those of fixed levels, by level name."""
    with_proofs: bool
    """Whether the proofs of generated levels are such solutions too."""

    @property
    def kept(self) -> int:
        """Number of fixed levels and their images, which come first among the levels of the run."""
        return len(self._images(self.fixed))

    @property
    def in_use(self) -> int:
        """Number of levels that episodes begin on: the kept ones and those of a batch."""
        return self.kept + self.count * (2 if self.mirrored else 1)

    def levels(self, current: Sequence[Made], previous: Sequence[Made] = ()) -> tuple[Level, ...]:
        """Return the levels of the run: fixed ones, those of the batch, and those on which episodes may have to end."""
        parts = (self.fixed, [made.level for made in current], [made.level for made in previous])
        return tuple(itertools.chain.from_iterable(self._images(part) for part in parts))

    def batch(self, first: int, previous: Sequence[Made]) -> LevelBatch:
        """Make the batch that begins at a number of the collection; errors as :meth:`Collection.take`."""
        return self.following(self.collection.take(first, self.count), previous)

    def following(self, made: tuple[Made, ...], previous: Sequence[Made]) -> LevelBatch:
        """Return levels as a batch that follows another one.

        What environments derive from the levels of the run is left in the level library, where the exchange finds it.
        """
        environment = self.environment.replace(levels=self.levels(made, previous), mirrored=False)
        NPlusPlusEnv(environment).close()
        if not self.along_solutions:
            return LevelBatch(made, None)
        solutions = {**self.solutions, **(self._proofs(made) if self.with_proofs else {})}
        return LevelBatch(made, start_states(environment, solutions, STATES_PER_LEVEL))

    def _images(self, levels: Sequence[Level]) -> list[Level]:
        return [*levels, *(mirrored(level) for level in levels if self.mirrored)]

    def _proofs(self, made: Sequence[Made]) -> dict[str, np.ndarray]:
        """Return solutions by level name, those of mirror images too where ties do not spoil them."""
        proofs = {each.level.name: each.inputs for each in made}
        return proofs | mirrored_solutions(pack(self._images([each.level for each in made])), proofs)


def held_out_collection(config: TrainConfig) -> Collection:
    """Return the levels that measure a run; none of them is in the ``train`` split of any seed."""
    return _collection(config, config.evaluation.split_seed, HELD_OUT_SPLIT)


def training_collection(config: TrainConfig, fixed: Sequence[Level], held_out: Sequence[Level]) -> Collection:
    """Return the levels that are made for a run to train on, other than fixed and held-out ones."""
    marks = frozenset(mark for level in (*fixed, *held_out) for mark in (level.raw.digest, level.name))
    return _collection(config, config.seed, TRAIN_SPLIT, marks)


def _collection(config: TrainConfig, seed: int, split: str, known: frozenset[str] = frozenset()) -> Collection:
    given, bounds = config.generated, read_range("generated_difficulty", config.generated.difficulty)
    return Collection(given.families, bounds, config.environment.max_frames, seed, split, known)


def held_out_count(config: TrainConfig) -> int:
    """Return how many generated levels a run holds out."""
    return round(config.evaluation.held_out * config.generated.count) if config.generates else 0


def evaluated_levels(config: TrainConfig) -> tuple[str | Level, ...]:
    """Return the levels on which the policy of a run is evaluated: ``generated`` stands for held-out ones.

    Raises:
        ConfigError: as :meth:`Collection.take`.
    """
    if not config.generates:
        return config.fixed_levels
    count = held_out_count(config) or MEASURED
    return (*config.fixed_levels, *(made.level for made in held_out_collection(config).take(0, count)))


def run_levels(config: TrainConfig) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return references of the fixed levels that a run trains on, and of those that it holds out.

    Besides generated levels, too few of them to be split are all trained on.

    Raises:
        ConfigError, UnknownLevelError, LevelFormatError: as :func:`split_levels`.
    """
    share = config.evaluation.held_out
    if share == 0:
        return config.fixed_levels, ()
    return split_levels(config.fixed_levels, share, config.evaluation.split_seed, optional=config.generates)


def level_digests(levels: Iterable[LevelSource]) -> list[str]:
    """Return the digest of tiles and entities of each level, in the order of an environment's ``level_names``.

    Raises:
        UnknownLevelError, LevelFormatError: as :func:`split_levels`.
    """
    return [level.raw.digest for level in load_levels(levels)]


def split_levels(
    levels: Sequence[str], held_out: float, seed: int, optional: bool = False
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Split levels at random into a training part and a held-out part.

    A level whose tiles and entities equal those of an earlier one is removed, whatever its name: in both parts it would
    make the held-out success meaningless, and twice in one part it would count twice.

    Args:
        levels: sets, levels, files, folders, packs and ranges of packs, as ``EnvironmentConfig.levels`` takes them.
        held_out: share of the levels to hold out, between 0 and 1; rounded to whole levels.
        seed: seed of the choice, at least 0; the same levels and seed give the same parts.
        optional: train on all levels where the share leaves a part empty.

    Returns:
        References of the training levels and of the held-out levels, one for each level, each part in the order of
        ``levels``; ``EnvironmentConfig.levels`` takes them.

    Raises:
        ConfigError: if the share leaves a part empty.
        UnknownLevelError: if a name is neither built in nor a file.
        LevelFormatError: if a level is malformed.
    """
    refs = _distinct_levels(levels)
    size, count = len(refs), round(held_out * len(refs))
    if not 0 < count < size:
        if optional:
            return tuple(levels), ()
        empty = "no level to hold out" if count == 0 else "no level to train on"
        fix = f"choose a share from {1 / size:.2g} to {1 - 1 / size:.2g}" if size > 1 else "name more levels"
        listed = listed_names(refs, 3) or "no levels"
        raise ConfigError(f"held_out: {held_out!r} of {size} levels ({listed}) leaves {empty}; {fix}")
    chosen = np.zeros(size, dtype=np.bool_)
    chosen[np.random.default_rng(seed).permutation(size)[:count]] = True
    training, out = (tuple(ref.reference for ref, out in zip(refs, chosen) if out == part) for part in (False, True))
    return training, out


def _distinct_levels(levels: Sequence[str]) -> list[LevelRef]:
    """Return the levels that names denote, without those whose tiles and entities equal those of an earlier one."""
    packs: OpenedPacks = {}
    found: dict[str, LevelRef] = {}
    for name in levels:
        for ref, level in readable(resolve(name, packs)):
            found.setdefault(level.raw.digest, ref)
    return list(found.values())
