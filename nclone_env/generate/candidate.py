"""From a sketch to a level with a proof: the checks that a sketch must pass, the cheap ones first.

Which split a level belongs to, train or held-out, follows from its tiles, whatever its seed: no level of one split, and
none with the same tiles or their mirror image, can ever be among those of the other.

Doors, movers and pads that could be removed without a change to any run are removed. An entity matters if there is a
run that shows it: inputs that complete the level with it or without it, and lead the ninja on another course without it
than with it. Such runs are looked for in two ways. The best solution known is played without the entity: its course
changes if the entity holds, carries or pushes the ninja. If it does not change, a shorter solution of the level without
the entity is searched for; it shows that the entity matters if it does not complete the level with it, because a door
is in its way or a drone kills. A run that completes both becomes the best solution.

Doors with their switches, everything that moves, shoots or pushes, pads and one-way platforms are checked; adjoining
one-way platforms and bounce blocks count as one. Gold, mines and toggle mines are not checked.

Doors and movers that are proposed are put in the way: each blocks the best solution of the level without it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from nclone_env import game
from nclone_env.generate.difficulty import EASIEST, Difficulty
from nclone_env.generate.draws import Draws
from nclone_env.generate.families import BY_KIND, FAMILIES, MOST_FRAMES, NEEDED
from nclone_env.generate.route import Unusable
from nclone_env.generate.runs import is_safe, least_clearance, play_out, random_wins, same_course
from nclone_env.generate.sketch import Proposal, Sketch
from nclone_env.level import Level, LevelSet, mirrored_tiles, pack, validate
from nclone_env.plan import Edits, Found, Task, first_solution, make_task, shorter_solution, wins_at_end

TRAIN_SPLIT, HELD_OUT_SPLIT = "train", "held-out"
SPLITS = (TRAIN_SPLIT, HELD_OUT_SPLIT)
_FEWEST_FRAMES = 30_000
"""Frames that the search for a first solution may simulate at an aim of 0; at 100 ``MOST_FRAMES`` of the family."""
_PROPOSAL_FRAMES, _FURNISHED_FRAMES, _SHORTER_FRAMES, _EDIT_FRAMES = 150_000, 20_000, 40_000, 20_000
_RANDOM_RUNS, _MORE_RANDOM_RUNS = 64, 192
_UNCHECKED = (
    *(game.NINJA, game.GOLD, game.EXIT, game.EXIT_SWITCH, game.MINE, game.TOGGLE_MINE),
    *game.DOOR_SWITCHES.values(),
)
LANDMARKS = (game.REGULAR_DOOR, game.LOCKED_DOOR)
"""Without one of these, the guide of a level is another: paths change, or the numbers of the landmarks."""
_ROWS = (game.ONE_WAY, game.BOUNCE_BLOCK)
_ADJOINING = 4  # units of 6 pixels
_TURNS, _TURN = 3, 6_000
_DOOR_FRAMES = 40_000
"""Frames that a search without a locked door may simulate; edits of a solution have ``_TURNS * _TURN``."""

RecordGroup = tuple[tuple[int, ...], ...]
"""The records of entities that count as one."""


def split_of(tiles: np.ndarray) -> str:
    """Return the split of the levels with some (23, 42) uint8 tiles, or with their mirror image."""
    ways = (tiles.tobytes(), mirrored_tiles(tiles).tobytes())
    return SPLITS[hashlib.blake2b(min(ways), digest_size=1).digest()[0] & 1]


def try_sketch(family: str, seed: int, split: str, bounds: tuple[int, int]) -> tuple[int, Trimmed, Difficulty]:
    """Draw a level of a seed and check it: its tiles belong to the split, its difficulty is within the bounds.

    Return what the family was asked for, 0 easy to 100 hard, the level as it was trimmed, and what was measured.
    """
    draws = Draws(seed)
    aim = draws.between(*bounds)
    sketch = FAMILIES[family](draws, aim)
    _demand(split_of(sketch.tiles) == split, "other split")
    level = sketch.level()
    _demand(not validate(level.raw), "not valid")
    _demand(is_safe(pack([level])), "start not safe")
    task = make_task(level)
    frames = _FEWEST_FRAMES + (MOST_FRAMES[family] - _FEWEST_FRAMES) * aim // 100
    found = first_solution(task, frames, seed)
    _demand(len(found.inputs) > 0, "no solution found")
    shorter = shorter_solution(task, found.inputs, _SHORTER_FRAMES, seed)
    made = furnish(sketch, Furnished(level, task, found, shorter, {}), min(frames, _PROPOSAL_FRAMES), seed)
    best = Edits(made.task, made.inputs, seed).spend(_EDIT_FRAMES)
    trimmed = trim(made.level, made.task, best, made.blocked, seed, family in BY_KIND)
    needed, kept = NEEDED.get(family), {game.kind_name(group[0][0]) for group, _ in trimmed.witnesses}
    _demand(needed is None or not kept.isdisjoint(needed), "nothing matters")
    effort = (first_solution(trimmed.task, frames, seed) if trimmed.removed else made.found).simulated
    measured = _measure(trimmed, effort, seed)
    _demand(measured.random_is_rare or measured.number < EASIEST, "random play")
    _demand(bounds[0] <= measured.number <= bounds[1], "other difficulty")
    _demand(
        all(shows(trimmed.level, trimmed.task.level_set, *witness) for witness in trimmed.witnesses), "witness lost"
    )
    return aim, trimmed, measured


def _demand(holds: bool, reason: str) -> None:
    if not holds:
        raise Unusable(reason)


def _measure(trimmed: Trimmed, effort: int, seed: int) -> Difficulty:
    """Measure the difficulty of a level; more random runs are made if one of the first wins."""
    levels = trimmed.task.level_set
    runs = _RANDOM_RUNS
    wins = random_wins(levels, runs, seed)
    if wins:
        runs += _MORE_RANDOM_RUNS
        wins += random_wins(levels, _MORE_RANDOM_RUNS, seed + 1)
    clearance = least_clearance(levels, trimmed.inputs)
    return Difficulty(effort, len(trimmed.inputs), wins, runs, clearance)


@dataclass(frozen=True, eq=False)
class Trimmed:
    """A level of which everything checked matters, the records that were removed, and the best solution known.

    ``witnesses`` are, for each entity, or group of them, that was checked and kept, its records and the inputs of a run
    that shows that it matters.
    """

    level: Level
    task: Task
    inputs: np.ndarray
    removed: tuple[tuple[int, ...], ...]
    witnesses: tuple[tuple[RecordGroup, np.ndarray], ...]


def trim(
    level: Level,
    task: Task,
    inputs: np.ndarray,
    blocked: Mapping[RecordGroup, np.ndarray],
    seed: int,
    by_kind: bool = False,
) -> Trimmed:
    """Remove from a level what does not matter.

    ``task`` is the level, prepared, ``inputs`` a solution, ``blocked`` runs that probably show that some records
    matter.
    """
    removed: list[tuple[int, ...]] = []
    witnesses: list[tuple[RecordGroup, np.ndarray]] = []
    for number, group in enumerate(groups_of(level, by_kind)):
        if group in blocked and shows(level, task.level_set, group, blocked[group]):
            witnesses.append((group, blocked[group]))
            continue
        without = without_group(level, group)
        new_guide = group[0][0] in LANDMARKS
        witness, inputs, task_without = _look_for_witness(task, without, new_guide, inputs, seed + number)
        if witness is None:
            removed += group
            level, task = without, task_without
        else:
            witnesses.append((group, witness))
    return Trimmed(level, task, inputs, tuple(removed), tuple(witnesses))


def shows(level: Level, levels: LevelSet, group: RecordGroup, inputs: np.ndarray) -> bool:
    """Return whether a run completes a level with or without some records, on another course without than with them.

    ``levels`` is the level, packed.
    """
    with_it = play_out(levels, inputs)
    without = play_out(pack([without_group(level, group)]), inputs)
    return (wins_at_end(with_it) or wins_at_end(without)) and not same_course(with_it, without)


def groups_of(level: Level, by_kind: bool = False) -> list[RecordGroup]:
    """Return the records to check, grouped where several count as one: ``by_kind`` all but doors with switches."""
    records = [tuple(record) for record in level.raw.records.tolist()]
    groups: list[list[tuple[int, ...]]] = []
    for place, record in enumerate(records):
        if record[0] in _UNCHECKED:
            continue
        last = groups[-1][-1] if groups else None
        is_like_last = last is not None and record[0] == last[0]
        adjoins = last is not None and abs(record[1] - last[1]) + abs(record[2] - last[2]) == _ADJOINING
        if record[0] in game.DOOR_SWITCHES:
            groups.append([record, records[place + 1]])
        elif is_like_last and (by_kind or (record[0] in _ROWS and adjoins)):
            groups[-1].append(record)
        else:
            groups.append([record])
    return [tuple(group) for group in groups]


def added_records(before: Level, after: Level) -> RecordGroup:
    """Return the records of a level that another one does not have."""
    records = ([tuple(record) for record in level.raw.records.tolist()] for level in (before, after))
    old, new = records
    return tuple(_without(new, tuple(old)))


def without_group(level: Level, group: RecordGroup) -> Level:
    """Return a level without some records."""
    left = list(_without([tuple(record) for record in level.raw.records.tolist()], group))
    return Level(replace(level.raw, records=np.array(left, np.uint8)), level.name)


def _without(records: list[tuple[int, ...]], group: RecordGroup) -> Iterator[tuple[int, ...]]:
    """Yield the records that are not in a group; of equal ones, as many stay as are not in it."""
    left = list(group)
    for record in records:
        if record in left:
            left.remove(record)
        else:
            yield record


def _look_for_witness(
    task: Task, without: Level, new_guide: bool, best: np.ndarray, seed: int
) -> tuple[np.ndarray | None, np.ndarray, Task]:
    """Search for a run that shows that some records of a level matter.

    ``without`` is the level without them, which has a guide of its own if ``new_guide``; ``best`` is the best solution
    known. Return the inputs of such a run, None if none was found; the best solution known then; and the level without
    the records, prepared, which counts only if there is no such run.
    """
    levels = pack([without])
    if not same_course(play_out(task.level_set, best), play_out(levels, best)):
        return best, best, task
    task_without = make_task(without) if new_guide else task.with_levels(levels)
    for found in _shorter_solutions(task_without, new_guide, best, seed):
        if not wins_at_end(play_out(task.level_set, found)):
            return found, best, task_without
        best = found
    return None, best, task_without


def _shorter_solutions(task: Task, new_guide: bool, best: np.ndarray, seed: int) -> Iterator[np.ndarray]:
    """Yield ever shorter solutions; a search by archives comes first if the guide of the task is a new one."""
    if new_guide:
        found = shorter_solution(task, best, _DOOR_FRAMES, seed)
        if len(found) < len(best):
            yield found
            best = found
    search = Edits(task, best, seed)
    for _ in range(_TURNS):
        before = len(search.best)
        search.advance(_TURN)
        if len(search.best) < before:
            yield search.best


@dataclass(frozen=True, eq=False)
class Furnished:
    """A level with the proposed entities that are in the way, its first solution, and the best one known.

    ``blocked`` is, for the records of each of these entities, the solution that they block.
    """

    level: Level
    task: Task
    found: Found
    inputs: np.ndarray
    blocked: dict[RecordGroup, np.ndarray]


def furnish(sketch: Sketch, bare: Furnished, frames: int, seed: int) -> Furnished:
    """Add proposed entities to a level, as long as it can be completed, until there are as many as wanted.

    ``bare`` is the level without them, and its solution; ``frames`` limits each search for a first solution.
    """
    chosen: list[Proposal] = []
    for proposal in sketch.proposals:
        if len(chosen) >= sketch.wanted:
            break
        level = sketch.level([*chosen, proposal])
        levels = pack([level])
        if same_course(play_out(levels, bare.inputs), play_out(bare.task.level_set, bare.inputs)):
            continue
        if not is_safe(levels):
            continue
        group = added_records(bare.level, level)
        task = make_task(level) if group[0][0] in LANDMARKS else bare.task.with_levels(levels)
        found = first_solution(task, frames, seed)
        if len(found.inputs):
            chosen.append(proposal)
            inputs = shorter_solution(task, found.inputs, _FURNISHED_FRAMES, seed)
            bare = Furnished(level, task, found, inputs, {**bare.blocked, group: bare.inputs})
    return bare
