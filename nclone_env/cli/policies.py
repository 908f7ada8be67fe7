"""``nclone-env policies``: the policies that ship with the package; ``evaluate``: how often a policy wins."""

from __future__ import annotations

from pathlib import Path

from tyro.conf import Positional

from nclone_env._table import table
from nclone_env.cli.output import check_episodes, check_folder, check_free
from nclone_env.cli.progress import LevelProgress, say
from nclone_env.errors import check_integer
from nclone_env.train import bundled_names, is_named, policy_card, policy_file


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
    force: bool = False,
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
        output: output folder; the folder of the checkpoint by default, ``runs/NAME-evaluation`` of a bundled policy,
            where a new evaluation replaces an earlier one.
        force: replace an earlier evaluation in ``output`` as well.

    Returns:
        The exit status, 0.
    """
    check_episodes(episodes)
    check_integer("attempts", attempts, low=1)
    check_integer("seed", seed, low=0)
    if output is not None:
        check_folder("output", output)
    file = policy_file(checkpoint)
    from nclone_env.train import evaluate_and_report, load_policy  # libraries that names of files do not need

    policy = load_policy(checkpoint, levels)
    environment, content = policy.environment, policy.checkpoint
    held_out = content.held_out.get("digests", [])
    folder = output or (Path("runs", f"{checkpoint.name}-evaluation") if is_named(checkpoint) else file.parent)
    timesteps = None if levels or candidates > 1 else content.counters.get("timesteps", 0)
    names = {"evaluation.txt": True, "evaluation.csv": timesteps is not None, "episode.mp4": video}
    written = [name for name, is_written in (names | {"recordings": recordings}).items() if is_written]
    if output is not None:
        folder.mkdir(parents=True, exist_ok=True)
    for name in written:
        check_free(folder / name, force or output is None)
    progress = LevelProgress()
    evaluate_and_report(
        policy.network, environment, folder, episodes, seed, video, attempts, held_out, timesteps, candidates,
        recordings, on_level=progress.level, say=progress.put,
    )  # fmt: skip
    return 0


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
    say(*table(("policy", "mode", "steps", "success", "what it does"), rows))
    return 0


def show_policy(policy: Positional[str]) -> int:
    """Show the card of a policy: how it was trained, and its scores on lists of levels.

    Args:
        policy: name of the policy.
    """
    card = policy_card(policy)
    card["steps"] = f"{card['steps']:,}"
    for name in ("title", "mode", "trained_on", "seed", "steps", "seconds", "date", "licence", "sha256"):
        say(f"{name.replace('_', ' '):<10} {card[name]}")
    for number, command in enumerate(card["commands"]):
        say(f"{'' if number else 'commands':<10} {command}")
    say(f"{'scores':<10} percent; in brackets 95 % intervals of a bootstrap over levels, of this one policy")
    rows = [
        (row["on"], str(row["levels"]), _with_interval(row), f"{100 * row['any']:.1f}", f"{100 * row['argmax']:.1f}")
        for row in card["scores"]
    ]
    say(*table(("on", "levels", "sampled", "any of 16", "argmax"), rows))
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
    say(f"wrote {address}; watch it with: nclone-env watch {name}")
    return 0


def _with_interval(row: dict[str, float]) -> str:
    return f"{100 * row['sampled']:.1f} ({100 * row['low']:.1f} to {100 * row['high']:.1f})"
