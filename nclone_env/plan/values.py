"""Frames to the exit from thousands of states at once, and for each first action: labels for a policy to learn from.

An archive search spreads over the states of a level. Then every cell is linked to the cells to which a held input leads
from it, and the frames to the exit follow from the exit backwards, as the shortest way over these links. A link ends at
some state of a cell, not at the one that the cell holds. So what the states of a cell share is their *delay*: the
frames that they take beyond the remaining path divided by a speed that the ninja hardly exceeds. The frames are
estimates: near the true ones where a cell is small against what matters in it, and never proofs.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from nclone_env.errors import ConfigError, check_integer
from nclone_env.jit import kernel
from nclone_env.level import LevelSource, load_level
from nclone_env.plan.archive import Archive, Rules, begin, cell_of, explore, make_archive
from nclone_env.plan.kernels import EMPTY, INPUTS, WON, expand, find_place, has_won, is_over, path_remaining, play
from nclone_env.plan.task import MAX_FRAMES, MOST_FRAMES, AnyWorlds, Start, Task, checked_rows, make_task, transferred
from nclone_env.sim import WorldArrays, copy_world, make_worlds

_RULES = Rules(12.0, 1.5, greed=0.0)
"""Small cells, no preference for places near the exit."""
_LONGEST = 8  # times that an input is held at most until a cell is left
_SLOWNESS = 1.0 / 4.5  # frames per pixel of the remaining path
_WON, _NOWHERE = -1, -2
"""In place of a cell: the exit is reached; the ninja dies, stays, or comes to a cell that was not visited."""


@dataclass(frozen=True, eq=False)
class StateValues:
    """States of a level, with the frames to the exit.

    Attributes:
        worlds: ``WorldArrays`` of C states, for reading.
        frames: (C,) float32, frames to the exit; infinite if no way was found.
        visited: (C,) int32, frames in which the search reached them from where it began.
        hold: frames of an action.
    """

    worlds: WorldArrays
    frames: np.ndarray
    visited: np.ndarray
    hold: int
    _task: Task
    _archive: Archive
    _delays: np.ndarray

    def of_actions(self, worlds: AnyWorlds, rows: Sequence[int] | np.ndarray) -> np.ndarray:
        """Return the frames to the exit from worlds, by the action that is held first.

        Args:
            worlds: ``self.worlds``, or a vector environment or session, of any level set. Bare worlds of an environment
                do not tell their level: whether it is this one is up to the caller.
            rows: (n,) integers, worlds on this level; six or seven times as many are allocated.

        Returns:
            (n, 6) float32, frames for each action; infinite if the ninja dies or no way is known from there.

        Raises:
            ConfigError: if a row is not among the worlds, or a world cannot be one of this level.
        """
        task, source = self._task, self.worlds
        if worlds is source:
            places = checked_rows(source, rows, "rows")
        else:
            source = transferred(task.level_set, worlds, rows, "rows")
            places = np.arange(len(source.ninjas))
        count = len(places) * len(INPUTS)
        target, inputs = make_worlds(count, task.level_set), np.array(INPUTS, np.uint8)
        origins, frames = np.zeros((2, count), np.int32)
        events = np.zeros(count, np.uint8)
        arguments = (task.levels, source, places, len(places), task.parts, inputs, self.hold, target)
        kept = expand(*arguments, origins, events, frames)
        total = np.where(events & WON, frames, np.inf).astype(np.float32)
        total[origins[:kept]] = frames[origins[:kept]] + self._frames_left(target, kept)
        return total.reshape(-1, len(INPUTS))

    def _frames_left(self, worlds: WorldArrays, count: int) -> np.ndarray:
        """Return (count,) float32, the frames to the exit by the best input that is held until a cell is left."""
        ways = find_ways(self._task, self._archive, worlds, count)
        delays = np.append(self._delays, np.array([np.inf, 0.0], np.float32))  # of _NOWHERE and _WON
        return np.min(ways.frames + np.float32(_SLOWNESS) * ways.left + delays[ways.cells], axis=1, initial=np.inf)


class _Ways(NamedTuple):
    """Where each action leads from n worlds if it is held until their cell is left.

    Attributes:
        cells: (n, 6) int32, cell, ``_WON`` or ``_NOWHERE``.
        frames: (n, 6) float32, frames on the way.
        left: (n, 6) float32, length of the remaining path there, pixels; 0 at the exit.
    """

    cells: np.ndarray
    frames: np.ndarray
    left: np.ndarray


def find_ways(task: Task, archive: Archive, worlds: WorldArrays, count: int) -> _Ways:
    """Return where each action leads from the first worlds."""
    ways = _Ways(np.zeros((count, len(INPUTS)), np.int32), *np.zeros((2, count, len(INPUTS)), np.float32))
    scratch = make_worlds(1, task.level_set)
    write_ways(task.levels, archive, task.guide, task.parts, _RULES, task.hold, worlds, scratch, ways)
    return ways


def state_values(
    level: LevelSource,
    *,
    frames: int = 2_000_000,
    hold: int = 4,
    cells: int = 20_000,
    seed: int = 0,
    max_frames: int = MAX_FRAMES,
    start: Start | None = None,
) -> StateValues:
    """Return the frames to the exit from the states that a search visits.

    Args:
        level: the level, in any form that ``load_level`` accepts.
        frames: frames that the search simulates; the links take about 100 more for each cell.
        hold: frames of an action.
        cells: most states.
        seed: of the random choices of the search.
        max_frames: frames from where the search begins to its last states.
        start: a vector environment or session, and the index of its world in which the search begins, as for ``solve``.

    Raises:
        LevelFormatError, UnknownLevelError: if the level cannot be loaded.
        UnsupportedLevelError: if it has no exit.
        ConfigError: if ``frames``, ``hold``, ``cells`` or ``max_frames`` is not positive or too large, the seed is
            negative, or ``start`` is not a world of the level.
    """
    numbers = {"frames": frames, "hold": hold, "cells": cells, "max_frames": max_frames}
    for name, value in numbers.items():
        if value < 1:
            raise ConfigError(f"{name}: expected a number of at least 1, got {value}")
    for name in ("hold", "max_frames"):
        if numbers[name] > MOST_FRAMES:
            raise ConfigError(f"{name}: expected at most {MOST_FRAMES:,} frames, got {numbers[name]:,}")
    check_integer("seed", seed, low=0, high=2**63 - 1)
    task = make_task(load_level(level), 0, max_frames, hold, start)
    archive = make_archive(task.level_set, cells, task.origin)
    archive.search["longest"], archive.search["hold"] = max_frames, hold
    archive.search["limit"] = max_frames + 1
    begin(task.levels, archive, task.guide, task.parts, _RULES, seed)
    while explore(task.levels, archive, task.guide, task.parts, _RULES, frames):
        archive.search["limit"] = max_frames + 1  # states from which the exit is farther count too
    count = int(archive.search[0]["cells"])
    lengths, delays = archive.cells["way"][:count], np.full(count, np.inf, np.float32)
    ways = find_ways(task, archive, archive.worlds, count)
    costs = np.maximum(ways.frames - np.float32(_SLOWNESS) * (lengths[:, None] - ways.left), 0.0)
    spread_delays(ways.cells, costs, delays)
    used = WorldArrays(*(array[:count] for array in archive.worlds))
    frames_left = np.float32(_SLOWNESS) * lengths + delays
    return StateValues(used, frames_left, archive.cells["frame"][:count], hold, task, archive, delays)


@kernel
def write_ways(levels, archive, guide, parts, rules, hold, worlds, scratch, ways):
    """Write to ``_Ways`` where each action of ``hold`` frames leads from the first worlds; one world of scratch."""
    for number in range(ways.cells.shape[0]):
        for action in range(len(INPUTS)):
            copy_world(worlds, number, scratch, 0)
            cell, frames = follow(levels, archive, parts, rules, hold, INPUTS[action], scratch)
            ways.cells[number, action], ways.frames[number, action] = cell, frames
            ways.left[number, action] = 0.0 if cell == _WON else path_remaining(guide, scratch, 0)


@kernel
def follow(levels, archive, parts, rules, hold, code, worlds):
    """Hold an input in the first world until its cell is left; return (cell, frames)."""
    before = cell_of(worlds, 0, parts, rules, 0)
    frames = 0
    for _ in range(_LONGEST):
        frames += play(levels, worlds, 0, code, hold)
        if is_over(worlds, 0):
            return _WON if has_won(worlds, 0) else _NOWHERE, frames
        key = cell_of(worlds, 0, parts, rules, 0)
        if key != before:
            number = archive.table.numbers[find_place(archive.table, key)]
            return _NOWHERE if number == EMPTY else number, frames
    return _NOWHERE, frames


@kernel
def spread_delays(links, costs, delays):
    """Relax (C,) float32 delays in place until each is the least over the (C, 6) links of its cell."""
    changed = True
    while changed:
        changed = False
        for step in range(links.shape[0]):
            number = links.shape[0] - 1 - step
            for action in range(links.shape[1]):
                cell = links[number, action]
                if cell != _NOWHERE:
                    delay = costs[number, action] + (np.float32(0.0) if cell == _WON else delays[cell])
                    if delay < delays[number]:
                        delays[number], changed = delay, True
