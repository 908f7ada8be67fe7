"""``nclone-env policies``: the policies that ship with the package."""

from pathlib import Path

from tyro.conf import Positional

from nclone_env._table import table
from nclone_env.train import bundled_names, policy_card


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
    from nclone_env.train import load_policy, policy_file, push_policy

    loaded = load_policy(policy, levels=("first-steps",))
    address = push_policy(policy_file(policy), loaded.config, loaded.checkpoint.counters.get("timesteps", 0), name)
    print(f"wrote {address}; watch it with: nclone-env watch {name}")
    return 0


def _with_interval(row: dict[str, float]) -> str:
    return f"{100 * row['sampled']:.1f} ({100 * row['low']:.1f} to {100 * row['high']:.1f})"
