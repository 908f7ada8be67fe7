"""Write a page for each id of the environment: a moving picture, spaces, reward, levels, random play and the best runs.

    python -m profiling.pictures.environments

The pages are ``docs/environments/ids/*.md``. Random play is 1,000 episodes a level of uniform random actions.
"""

from __future__ import annotations

import re
from contextlib import closing
from pathlib import Path

import gymnasium
import numpy as np
import tyro
from tyro.conf import Positional

from nclone_env import EnvironmentConfig, NPlusPlusVectorEnv
from nclone_env.env import REGISTERED, WON
from nclone_env.game import FRAMES_PER_SECOND
from nclone_env.level import known_solutions, load_level, load_levels
from nclone_env.replay.video import write_video
from profiling.pictures.readme import level_pictures

FOLDER = Path("docs/environments/ids")
RATE = 10  # pictures a second
LONGEST = 600  # frames of a moving picture
EPISODES, NUM_ENVS = 1000, 250


def main(folder: Positional[Path] = FOLDER) -> None:
    """Write the pages and pictures of all ids."""
    folder.mkdir(parents=True, exist_ok=True)
    won: dict[tuple[str, int], float] = {}
    for name, fields in REGISTERED.items():
        config = EnvironmentConfig(**fields)
        levels = [level.name for level in load_levels(config.levels)]
        shown = shown_level(levels)
        picture = folder / f"{levels[0].partition('/')[0]}.gif"
        if not picture.exists():
            pictures = level_pictures(shown, np.frombuffer(known_solutions()[shown], np.uint8))
            frames = pictures[:LONGEST]
            halves = [frame[::2, ::2] for frame in frames[:: FRAMES_PER_SECOND // RATE] + frames[-1:] * RATE]
            write_video(halves, picture, RATE)
        for level in levels:
            key = level, config.max_frames
            won.setdefault(key, random_wins(level, config.max_frames))
        rows = [(level, won[level, config.max_frames]) for level in levels]
        (folder / f"{slug(name)}.md").write_text(page(name, rows, picture.name, shown))
        print(name, f"{picture.stat().st_size / 1e3:.0f} KB", flush=True)


def slug(name: str) -> str:
    """Return the name of the file of an id, such as ``jumps`` or ``pixels``; that of the first one is ``default``."""
    rest = name.removeprefix("nclone/NPlusPlus-").rpartition("-v")[0]
    return re.sub(r"(?<=[a-z])(?=[A-Z\d])", "-", rest).lower() or "default"


def shown_level(levels: list[str]) -> str:
    """Return the level that is shown: with the longest known solution that fits into the picture, else the shortest."""
    known = known_solutions()
    short = [level for level in levels if len(known[level]) <= LONGEST]
    return max(short, key=lambda each: len(known[each])) if short else min(levels, key=lambda each: len(known[each]))


def random_wins(level: str, max_frames: int) -> float:
    """Return the share of episodes that random play wins on a level."""
    random, wins, ended = np.random.default_rng(0), 0, np.zeros(NUM_ENVS, np.int64)
    each = EPISODES // NUM_ENVS
    fields = {"levels": level, "observations": "game_state", "max_frames": max_frames}
    with closing(NPlusPlusVectorEnv(None, NUM_ENVS, **fields)) as envs:
        envs.reset(seed=0)
        while ended.min() < each:
            _, _, terminated, truncated, info = envs.step(random.integers(6, size=NUM_ENVS))
            over = (terminated | truncated) & (ended < each)
            wins += int(np.count_nonzero(over & (info["outcome"] == WON)))
            ended += over
    return wins / EPISODES


def page(name: str, rows: list[tuple[str, float]], picture: str, shown: str) -> str:
    """Return the page of an id."""
    fields, known = REGISTERED[name], known_solutions()
    config = EnvironmentConfig(**fields)
    with closing(gymnasium.make(name)) as env:
        observation, action = env.observation_space, env.action_space
    spaces = observation.spaces.items() if isinstance(observation, gymnasium.spaces.Dict) else [("", observation)]
    lines = [f"{f'`{key}`: ' if key else ''}`{space}`" for key, space in spaces]
    reward = ", ".join(f"{key} {value:g}" for key, value in vars(config.reward).items())
    table = [
        f"| `{level}` | {load_level(level).raw.title} | {len(known[level])} | {share:.1%} |" for level, share in rows
    ]
    skip, limit = config.frame_skip, config.max_frames
    return f"""# {name}

![A solution of {shown}, with its path]({picture})

`gymnasium.make("nclone_env:{name}")`

| | |
|---|---|
| observation space | {"<br>".join(lines)} |
| action space | `{action}`: 3 x jump + direction (none, left, right), held for {skip} frames |
| reward | {reward} ([rewards](../vector.md#custom-rewards)) |
| end of an episode | won, died, or {limit:,} frames ({limit / FRAMES_PER_SECOND:g} s, {limit // skip:,} steps) |
| version | `{name.rpartition("-")[2]}`; what would raise it: [Versions](../versions.md#when-a-version-rises) |

An episode plays one of the levels, drawn by the seed. Best: frames of the shortest known solution with inputs held for
four frames. Random: share of {EPISODES:,} episodes that uniform random actions win.

| level | title | best, frames | random |
|---|---|---:|---:|
{chr(10).join(table)}
"""


if __name__ == "__main__":
    tyro.cli(main, description=__doc__)
