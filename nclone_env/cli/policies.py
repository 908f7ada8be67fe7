"""``nclone-env policies``: the policies that ship with the package; ``evaluate``: how often a policy wins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tyro.conf import Positional

from nclone_env._files import write_file
from nclone_env._table import table
from nclone_env.cli.progress import LevelProgress
from nclone_env.errors import check_integer
from nclone_env.game import CELEBRATING, FRAMES_PER_SECOND
from nclone_env.train import bundled_names, is_named, policy_card, policy_file

if TYPE_CHECKING:  # simulator and trainer are loaded by the commands that need them
    from nclone_env.config import EnvironmentConfig
    from nclone_env.train import ActorCritic, LevelResult, Mode

_MOST_EPISODES = 1 << 24
_EPISODES, _EPISODES_IN_ALL, _LEAST_EPISODES = 100, 10_000, 16
"""By default: of a level; of all levels, so that the evaluation of thousands is no longer than their training; and of a
level where these are too few."""


def evaluate(
    checkpoint: Positional[Path],
    levels: tuple[str, ...] = (),
    episodes: int | None = None,
    attempts: int = 16,
    candidates: int = 1,
    seed: int = 0,
    video: bool = True,
    recordings: bool = False,
    output: Path | None = None,
) -> int:
    """Print the success rate of a checkpoint's policy on each level next to a random baseline.

    Levels that were held out in training are marked.

    Args:
        checkpoint: file written by ``train``, the folder of a run (its latest checkpoint), or the name of a bundled
            policy: ``nclone-env policies list``.
        levels: levels to evaluate on; by default those of the run, held-out ones included.
        episodes: number of episodes per level; by default 100, and fewer of more than 100 levels, 16 of 625 and more.
        attempts: number of sampled attempts of which any has to succeed, at most ``episodes``; 1: not printed.
        candidates: with sampled actions, play so many candidates of the next 256 frames in copies of the environment,
            and take the best; 1: none.
        seed: seed of the environments and of sampled and random actions.
        video: write a video of one episode.
        recordings: write the fastest win on each level as a recording, for ``watch`` and ``replay verify``.
        output: output folder; the folder of the checkpoint by default, ``runs/NAME-evaluation`` of a bundled policy.

    Returns:
        The exit status, 0.
    """
    from nclone_env.train import load_policy

    check_episodes(episodes)
    policy = load_policy(checkpoint, levels)
    environment, content = policy.environment, policy.checkpoint
    held_out = content.held_out.get("digests", [])
    file = policy_file(checkpoint)
    folder = output or (Path("runs", f"{checkpoint.name}-evaluation") if is_named(checkpoint) else file.parent)
    timesteps = None if levels or candidates > 1 else content.counters.get("timesteps", 0)
    results = evaluate_and_report(
        policy.network, environment, folder, episodes, seed, video, attempts, held_out, timesteps, candidates
    )
    if recordings:
        written = write_recordings(results, environment, folder / "recordings")
        print(f"{written} recordings in {folder / 'recordings'}, each replayed and verified")
    return 0


def check_episodes(episodes: int | None) -> None:
    """Check the number of episodes if there is one; each has an environment of its own.

    Raises:
        ConfigError: if it is out of range.
    """
    if episodes is not None:
        check_integer("episodes", episodes, low=1, high=_MOST_EPISODES)


def default_episodes(levels: int) -> int:
    """Return the number of episodes on each of so many levels that an evaluation plays if none is given."""
    return min(_EPISODES, max(_EPISODES_IN_ALL // levels, _LEAST_EPISODES))


def evaluate_and_report(
    policy: ActorCritic,
    environment: EnvironmentConfig,
    folder: Path,
    episodes: int | None,
    seed: int,
    video: bool,
    attempts: int = 1,
    held_out: Sequence[str] = (),
    timesteps: int | None = None,
    candidates: int = 1,
) -> dict[Mode, tuple[LevelResult, ...]]:
    """Evaluate a policy, print the table of success rates, and save it, as text and as CSV, and a video to ``folder``.

    Args as of :func:`evaluate`, and: ``held_out``, digests of the levels that were held out in training; ``timesteps``
    for which the policy was trained; None: the table of results of its run, which ``compare`` reads, stays as it is,
    because other levels are played, or with ``candidates``.

    Returns:
        The results of all levels by mode.
    """
    from nclone_env.level import known_solutions_of, load_levels
    from nclone_env.replay import run_pictures, write_video
    from nclone_env.train import best_episode, compare, evaluated_run, level_digests, success_table, write_results

    progress, digests = LevelProgress(), level_digests(environment.levels)
    episodes = episodes or default_episodes(len(digests))
    results = compare(policy, environment, episodes, seed, on_level=progress.level, candidates=candidates)
    progress.clear()
    known = {name: len(inputs) for name, inputs in known_solutions_of(load_levels(environment.levels)).items()}
    marks = [digest in held_out for digest in digests] if held_out else ()
    report = success_table(results, known, min(attempts, episodes), marks)
    if candidates > 1:
        report += f"\nsampled ones are the best of {candidates} candidates of each decision"
    print(report)
    folder.mkdir(parents=True, exist_ok=True)
    write_file(folder / "evaluation.txt", f"{report}\n".encode())
    if timesteps is not None:
        write_results(results, timesteps, folder / "evaluation.csv")
    if video:
        run = evaluated_run(best_episode(results), environment)
        write_video(run_pictures(run), folder / "episode.mp4", FRAMES_PER_SECOND)
    print(f"saved to {folder}")
    return results


def write_recordings(
    results: Mapping[Mode, tuple[LevelResult, ...]], environment: EnvironmentConfig, folder: Path
) -> int:
    """Save the fastest win of the policy on each level, named by the level and its number; return how many there are.

    Raises:
        RuntimeError: if the simulator does not reproduce a win; nothing is saved of it.
    """
    from nclone_env.level import load_levels
    from nclone_env.replay import Recording, recording_name

    written = 0
    for number, level in enumerate(load_levels(environment.levels)):
        wins = [results[mode][number] for mode in ("argmax", "sampled") if results[mode][number].won]
        if wins:
            fastest = min(wins, key=lambda result: len(result.actions))
            folder.mkdir(parents=True, exist_ok=True)
            recording = Recording.of(level, fastest.inputs(environment), {"frame_skip": environment.frame_skip})
            state = recording.verify().state
            if state != CELEBRATING:
                raise RuntimeError(f"recordings: the win on {fastest.level} ends in state {state} when it is replayed")
            recording.save(folder / recording_name(number, fastest.level))
            written += 1
    return written


def list_policies() -> int:
    """List the policies that ship with the package, for ``watch``, ``evaluate``, ``train --init`` and ``load_policy``.

    Success is the mean over the first list of levels of each card.
    """
    rows = []
    for name in bundled_names():
        card = policy_card(name)
        first = card["scores"][0]
        score = f"{100 * first['sampled']:.1f} % of {first['on']}"
        rows.append((name, card["mode"], f"{card['steps']:,}", score, card["title"]))
    print("\n".join(table(("policy", "mode", "steps", "success", "what it does"), rows)))
    return 0


def show_policy(policy: Positional[str]) -> int:
    """Show the card of a policy: how it was trained, and its scores on lists of levels.

    Args:
        policy: name of the policy.
    """
    card = policy_card(policy)
    card["steps"] = f"{card['steps']:,}"
    for name in ("title", "mode", "trained_on", "seed", "steps", "seconds", "date", "licence", "sha256"):
        print(f"{name.replace('_', ' '):<10} {card[name]}")
    for number, command in enumerate(card["commands"]):
        print(f"{'' if number else 'commands':<10} {command}")
    print(f"{'scores':<10} percent; in brackets 95 % intervals of a bootstrap over levels, of this one policy")
    rows = [
        (row["on"], str(row["levels"]), _with_interval(row), f"{100 * row['any']:.1f}", f"{100 * row['argmax']:.1f}")
        for row in card["scores"]
    ]
    print("\n".join(table(("on", "levels", "sampled", "any of 16", "argmax"), rows)))
    return 0


def push(policy: Positional[Path], name: Positional[str]) -> int:
    """Put a policy on the hub of Hugging Face, with a card; every command then takes its name.

    Args:
        policy: checkpoint, or the folder of a run.
        name: hub:USER/NAME; the account is the one of 'hf auth login'.
    """
    from nclone_env.train import load_policy, push_policy

    loaded = load_policy(policy, levels=("first-steps",))
    address = push_policy(policy_file(policy), loaded.config, loaded.checkpoint.counters.get("timesteps", 0), name)
    print(f"wrote {address}; watch it with: nclone-env watch {name}")
    return 0


def _with_interval(row: dict[str, float]) -> str:
    return f"{100 * row['sampled']:.1f} ({100 * row['low']:.1f} to {100 * row['high']:.1f})"
