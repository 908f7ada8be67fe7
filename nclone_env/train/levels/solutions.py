"""Solutions of levels, as demonstrations and to begin episodes along them: recorded, known, or by the planner.

The searches of the planner are deterministic, and their results are kept on disk with other arrays derived from levels,
so that later runs need not repeat them, whatever their levels, and a preparation that is interrupted goes on where it
was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from nclone_env._arrays import ArrayStore
from nclone_env.config import EnvironmentConfig
from nclone_env.env import PackedStarts, pack_starts, playable_levels
from nclone_env.errors import ConfigError, InputsError, UnknownLevelError, check_integer, checked, did_you_mean
from nclone_env.game import ACTION_OF_INPUT, CELEBRATING, DEAD, INPUT_OF_ACTION, INPUT_SUICIDE
from nclone_env.level import (
    Level,
    LevelSet,
    RawLevel,
    known_solutions_of,
    mirrored_inputs,
)
from nclone_env.plan import smooth, solve
from nclone_env.replay import Recording, load_any_recording
from nclone_env.sim import Session, World, check_inputs, simulate
from nclone_env.train.hooks import SILENT, Hooks

KNOWN = "known"
"""Stand in ``TrainConfig.starts`` for the known solutions of built-in levels, and for those that the planner finds."""
PLANNED = "planned"
"""Name of these solutions among sources of solutions."""
FRAMES = 2_000_000
"""Frames of a search for a demonstration, about half a second."""
_FRAMES_AT_FIRST, _FRAMES_AT_MOST = 200_000, 1_200_000
"""Frames of a search for starts, and of one that finds no solution within these, which ends with its first."""
_PLANNER = "nclone_env.plan.solver"
_MEMORY = 150_000_000  # bytes of a search, at most
_MOST_PLANNED = 1200
"""Levels of a run that are searched for starts, which takes two cores two minutes. The others begin at their start, by
policies that learned to reach an exit on these."""
STATES_PER_LEVEL = 16
"""Snapshots along the solution of a level in a training run."""


@dataclass(frozen=True)
class Planner:
    """Finds solutions of the levels of a run."""

    threads: int = 1
    """Levels that are searched at a time."""
    hooks: Hooks = SILENT
    """Told of each level that was searched, not of results that were kept."""

    def solutions(self, levels: Sequence[Level], max_frames: int) -> dict[str, np.ndarray]:
        """Return inputs that complete levels with an exit, (T,) uint8 by name; levels without any are left out."""

        def search(level: Level) -> np.ndarray:
            frames, to_first = _FRAMES_AT_FIRST, _FRAMES_AT_MOST
            return solve(level, frames=frames, frames_to_first=to_first, max_frames=max_frames, memory=_MEMORY).inputs

        name = f"solutions of {max_frames} frames by {_FRAMES_AT_FIRST} or {_FRAMES_AT_MOST}"
        return self._kept(levels, name, "solutions planned", search)

    def demonstrations(self, levels: Sequence[Level], max_frames: int, frame_skip: int) -> dict[str, np.ndarray]:
        """Return inputs with few changes, held for ``frame_skip`` frames as by a policy; else as :meth:`solutions`."""

        def search(level: Level) -> np.ndarray:
            found = solve(level, frames=FRAMES, max_frames=max_frames, hold=frame_skip, memory=_MEMORY)
            return smooth(level, found.inputs, hold=frame_skip) if found.completed else found.inputs

        name = f"demonstrations of {max_frames} frames by {FRAMES} held {frame_skip}"
        return self._kept(levels, name, "demonstrations planned", search)

    def _kept(
        self, levels: Sequence[Level], name: str, what: str, search: Callable[[Level], np.ndarray]
    ) -> dict[str, np.ndarray]:
        """Return what a search finds on each level, from disk if it was found before."""
        digests = {level.name: level.raw.digest for level in levels}
        store = ArrayStore(name, _PLANNER, np.uint8)
        found = store.read(digests.values())
        missing = [level for level in levels if level.raw.digest not in found]
        for level, inputs in self._searched(missing, what, len(digests), search):
            found[level.raw.digest] = inputs
            store.write(level.raw.digest, inputs)
        return {name: found[digest] for name, digest in digests.items() if len(found[digest])}

    def _searched(
        self, levels: Sequence[Level], what: str, count: int, search: Callable[[Level], np.ndarray]
    ) -> Iterator[tuple[Level, np.ndarray]]:
        """Yield levels with what a search finds on them; an error cancels those that wait."""
        executor = ThreadPoolExecutor(self.threads)
        try:
            for number, found in enumerate(zip(levels, executor.map(search, levels)), count - len(levels) + 1):
                yield found
                self.hooks.level(what, number, count)
        finally:
            executor.shutdown(cancel_futures=True)


def find(levels: LevelSet, sources: Sequence[str], max_frames: int, planner: Planner) -> dict[str, Any]:
    """Return inputs that reach the exit by level name, one byte a frame; recordings come before known ones, then plans.

    Recordings and known solutions of a level also serve its mirror image, where they win with left and right exchanged.

    Solutions of other levels are left out, and those that are longer than ``max_frames``. Of more than 1,200 levels
    without a recording or a known solution only so many are planned: those of the smallest digests, a sample that
    depends on their tiles and entities alone, so that runs on other choices of the same levels find many of them kept.

    Args:
        sources: recordings (``.replay`` or attract files), ``known`` for the known solutions of built-in levels, and
            ``planned`` for solutions that the planner finds now.
    """
    recordings = [load_any_recording(source) for source in sources if source not in (KNOWN, PLANNED)]
    recorded = recorded_solutions(levels.levels, recordings)
    found: dict[str, Any] = {name: inputs for name, inputs in recorded.items() if len(inputs) <= max_frames}
    if KNOWN in sources:
        known = known_solutions_of(levels.levels)
        found = {name: inputs for name, inputs in known.items() if len(inputs) <= max_frames} | found
    found |= mirrored_solutions(levels, found)
    if PLANNED in sources:
        unsolved = _without_images([level for level in levels.levels if level.name not in found], levels.images)
        first = sampled(unsolved, _MOST_PLANNED)
        if first:
            found |= planner.solutions(first, max_frames)
            found |= mirrored_solutions(levels, found)
        solved = [level.raw.digest for level in first if level.name in found]
        again = {*solved, *(levels.images[digest] for digest in solved)}
        rest = [level for level in levels.levels if level.name not in found and level.raw.digest in again]
        if rest:  # images that the solution of their level does not solve
            found |= planner.solutions(rest, max_frames)
    if not found:
        more = f" and {len(levels.names) - 3} more" if len(levels.names) > 3 else ""
        raise ConfigError(
            f"starts: expected recordings that reach the exit of a training level within max_frames, {max_frames}, "
            f"{KNOWN!r} with built-in levels, or {PLANNED!r}, got {', '.join(sources)} for "
            f"{', '.join(levels.names[:3])}{more}; check recordings with 'nclone-env replay verify', or leave out "
            "starts (--starts without words), and episodes begin at the start of their level"
        )
    return found


def recorded_solutions(levels: Sequence[Level], recordings: Iterable[Recording]) -> dict[str, np.ndarray]:
    """Return the shortest way to the exit of each level that is recorded, inputs (T,) uint8 by level name.

    Each recording is simulated, and levels are compared by tiles and entities. Frames after the one in which the ninja
    reaches the exit do not count.
    """
    digests = {level.raw.digest for level in levels}
    found: dict[str, np.ndarray] = {}
    for recording in recordings:
        digest = recording.level.digest
        if digest not in digests:
            continue
        verdict = recording.verify()
        is_solution = verdict.agrees and verdict.state == CELEBRATING
        if is_solution and (digest not in found or verdict.end < len(found[digest])):
            found[digest] = recording.inputs[: verdict.end]
    return {level.name: found[level.raw.digest] for level in levels if level.raw.digest in found}


def mirrored_solutions(levels: LevelSet, solutions: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Return solutions of levels whose mirror images are solved: the same inputs with left and right exchanged.

    Each is simulated, as rounding and ties may spoil it. Inputs, (T,) uint8 by level name, end with the one that wins.
    """
    solved = {level.raw.digest: solutions[level.name] for level in levels.levels if level.name in solutions}
    session = Session(levels, max_frames=max(map(len, solved.values()), default=1))
    found: dict[str, np.ndarray] = {}
    for number, level in enumerate(levels.levels):
        inputs = None if level.name in solutions else solved.get(levels.images[level.raw.digest])
        if inputs is not None:
            exchanged = mirrored_inputs(check_inputs(inputs))
            session.start(number)
            won = _until_win(exchanged, session.record(exchanged, entities=False).ninjas["state"])
            found |= {} if won is None else {level.name: won}
    return found


def winning_inputs(level: RawLevel, inputs: np.ndarray) -> np.ndarray | None:
    """Return inputs, (T,) uint8, up to the frame in which the ninja reaches the exit; None if it does not."""
    return _until_win(inputs, simulate(level, inputs).state)


def _until_win(inputs: np.ndarray, states: np.ndarray) -> np.ndarray | None:
    wins = np.flatnonzero(states == CELEBRATING)
    return inputs[: wins[0] + 1] if len(wins) else None


def _without_images(levels: Sequence[Level], images: Mapping[str, str]) -> list[Level]:
    """Return levels without those that are mirror images of earlier ones."""
    kept: dict[str, Level] = {}
    for level in levels:
        if images[level.raw.digest] not in kept:
            kept[level.raw.digest] = level
    return list(kept.values())


def sampled(levels: Sequence[Level], most: int) -> list[Level]:
    """Return at most so many of some levels, those of the smallest digests, in order."""
    chosen = sorted(range(len(levels)), key=lambda number: levels[number].raw.digest)[:most]
    return [levels[number] for number in sorted(chosen)]


def run_starts(environment: EnvironmentConfig, sources: Sequence[str], planner: Planner) -> StartStates | None:
    """Return the states along solutions of :func:`find` that the episodes of a run begin in; None without sources."""
    if not sources:
        return None
    solutions = find(playable_levels(environment), sources, environment.max_frames, planner)
    return start_states(environment, solutions, STATES_PER_LEVEL, planner.hooks)


@dataclass(frozen=True, eq=False)
class StartStates:
    """K states along solutions.

    Attributes:
        states: the states, as ``set_starts`` of a vector environment takes them; those of a level from its start to its
            exit, one level after another.
        levels: (K,) int64, ascending; the level of each, an index of the environment's ``level_names``.
        frames: (K,) int64; the number of inputs before each.
    """

    states: PackedStarts
    levels: np.ndarray
    frames: np.ndarray


@checked()
def start_states(
    config: EnvironmentConfig, solutions: Mapping[str, Any], count: int, hooks: Hooks = SILENT
) -> StartStates:
    """Return states along solutions of the levels of an environment.

    Those of a level divide its solution evenly, without its start and its end.

    Args:
        config: configuration of the vector environment that will begin episodes in them.
        solutions: inputs that reach the exit, one byte 0..7 a frame, by level name; see
            ``nclone_env.level.known_solutions``. Levels without one get no states; inputs after the exit are ignored.
        count: number of states of a level, at least 1; fewer if its solution is shorter.
        hooks: told of the levels whose solutions were played.

    Raises:
        UnknownLevelError: if a name is not one of the environment's ``level_names``.
        InputsError: if an input is not a whole number from 0 to 7.
        ConfigError: if inputs do not reach the exit within the time limit, or ``count`` is out of range.
    """
    check_integer("count", count, low=1, high=1 << 20)
    levels, states, places, frames = playable_levels(config), list[World](), list[int](), list[int]()
    session, numbers = Session(levels, max_frames=config.max_frames), {name: n for n, name in enumerate(levels.names)}
    for name in solutions:
        if name not in numbers:
            got = f"{name!r}{did_you_mean(name, numbers)}"
            raise UnknownLevelError(f"solutions: expected a name of a level of the environment, got {got}")
    for done, name in enumerate(sorted(solutions, key=numbers.__getitem__), start=1):
        inputs = _playable(solutions[name], name)[: config.max_frames]
        inputs = _until_the_exit(session, numbers[name], inputs, config.max_frames)
        along = _states_along(session, numbers[name], inputs, count)
        states += along.values()
        places += [numbers[name]] * len(along)
        frames += along
        hooks.level("solutions played", done, len(solutions))
    return StartStates(pack_starts(levels, states), np.array(places, np.int64), np.array(frames, np.int64))


def _states_along(session: Session, number: int, inputs: np.ndarray, count: int) -> dict[int, World]:
    """Return states that divide the inputs on a level evenly, by the number of inputs before each."""
    session.start(number)
    states: dict[int, World] = {}
    before = 0
    for frame in sorted({round(part * len(inputs) / (count + 1)) for part in range(1, count + 1)} - {0, len(inputs)}):
        session.play(inputs[before:frame])
        before, states[frame] = frame, session[0].copy()
    return states


def _until_the_exit(session: Session, number: int, inputs: np.ndarray, max_frames: int) -> np.ndarray:
    """Return the inputs on a level up to the frame in which the ninja reaches the exit."""
    session.start(number)
    states = session.record(inputs, entities=False).ninjas["state"]
    ends = np.flatnonzero(np.isin(states, (CELEBRATING, DEAD)))
    frames = int(ends[0]) + 1 if len(ends) else len(states)
    if len(ends) and states[ends[0]] == CELEBRATING:
        return inputs[:frames]
    unfinished = "timed_out" if frames == max_frames else "playing" if frames else "no input"
    raise ConfigError(
        f"inputs: expected a solution that reaches the exit of {session.level_set.names[number]!r}, got "
        f"{'died' if len(ends) else unfinished} after {frames} frames; max_frames is {max_frames}"
    )


def _playable(inputs: Any, level: str) -> np.ndarray:
    """Return the inputs of the actions of an environment for input bytes, (T,) uint8."""
    codes = check_inputs(inputs)
    if (codes & INPUT_SUICIDE).any():
        frame = int(np.flatnonzero(codes & INPUT_SUICIDE)[0])
        raise InputsError(f"inputs: expected bytes 0..7 for {level!r}, got {codes[frame]} (give up) in frame {frame}")
    return np.array(INPUT_OF_ACTION, np.uint8)[np.array(ACTION_OF_INPUT)[codes]]
