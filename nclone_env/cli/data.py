"""``nclone-env data``: data sets for offline learning."""

import sys
from pathlib import Path

from tyro.conf import Positional

from nclone_env.benchmark import export_dataset, played
from nclone_env.cli.benchmark import named_packs
from nclone_env.cli.output import counted
from nclone_env.cli.progress import LevelProgress
from nclone_env.config import EnvironmentConfig, ObservationName
from nclone_env.errors import optional_module
from nclone_env.train import Hooks


def export(
    sources: Positional[tuple[str, ...]],
    name: str,
    observations: tuple[ObservationName, ...] = ("game_state",),
    max_frames: int = 1200,
    packs: tuple[str, ...] = (),
) -> int:
    """Write episodes as a data set of Minari, with observations computed from their actions.

    Args:
        sources: submissions to the benchmark (.zip), all attempts of which are taken; recordings, their folders, and
            names of built-in levels or sets, whose known solutions are taken.
        name: name of the data set, such as nplusplus/builtin-expert-v0.
        observations: observations of each step.
        max_frames: frames after which an episode is lost; for submissions those of the track.
        packs: for a track of the game, its packs, such as SI=SI.txt.
    """
    optional_module("minari", "minari")
    config = EnvironmentConfig(observations=observations, max_frames=max_frames)
    folders = {source: sorted(map(str, Path(source).rglob("*.replay"))) for source in sources if Path(source).is_dir()}
    files = [file for source in sources for file in folders.get(source, [source])]
    found = played(files, config, named_packs(packs))
    for source, reason in found.skipped.items():
        sys.stderr.write(f"left out: {source}: {reason}\n")
    progress = LevelProgress()
    made = export_dataset(name, found, f"Episodes of {', '.join(sources)}", Hooks(on_level=progress.level))
    progress.clear()
    scores = made.storage.metadata
    print(
        f"wrote {name}: {counted(made.total_episodes, 'episode')}, {counted(made.total_steps, 'step')}, returns of "
        f"random play {scores['ref_min_score']:.2f}, of the best {scores['ref_max_score']:.2f}\n"
        f'load it with minari.load_dataset("{name}")'
    )
    return 0
