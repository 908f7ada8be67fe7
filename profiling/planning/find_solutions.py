"""Search for shorter solutions of the built-in levels with trained policies; keep them in ``levels/solutions.toml``.

Every level is played many times with sampled and with argmax actions. A win enters the file only if ``simulate``
replays it and it is shorter than the known solution.
"""

from __future__ import annotations

from pathlib import Path

import tyro
from tyro.conf import Positional

from nclone_env._files import write_file
from nclone_env.game import CELEBRATING, INPUT_OF_ACTION
from nclone_env.level.catalog import basic_sets, by_number, levels_folder
from nclone_env.level.solutions import SOLUTIONS_FILE, format_inputs, known_solutions
from nclone_env.sim.trajectory import simulate
from nclone_env.train import load_policy
from nclone_env.train.collect.evaluate import Mode, evaluate

EPISODES = 400
HEADER = (
    "# The shortest known solution of each level with inputs held for four frames: frames and inputs (L left, R right, "
    "J jump,\n# . nothing).\n\n"
)


def winning_inputs(level: str, actions: list[int], frame_skip: int) -> bytes | None:
    """Return the inputs of an episode up to the winning frame, None if it does not win."""
    inputs = bytes(INPUT_OF_ACTION[action] for action in actions for _ in range(frame_skip))
    wins = (simulate(level, inputs).state == CELEBRATING).nonzero()[0]
    return inputs[: int(wins[0]) + 1] if len(wins) else None


def improve(solutions: dict[str, bytes], checkpoint: Path) -> None:
    """Replace solutions by shorter ones that the policy of a checkpoint finds."""
    policy = load_policy(checkpoint, tuple(basic_sets()))
    modes: tuple[Mode, ...] = ("sampled", "argmax")
    for mode in modes:
        for result in evaluate(policy.network, policy.environment, mode, EPISODES if mode == "sampled" else 1):
            inputs = winning_inputs(result.level, result.actions.tolist(), policy.environment.frame_skip)
            known = solutions.get(result.level)
            if inputs is not None and (known is None or len(inputs) < len(known)):
                print(f"{result.level}: {len(inputs)} frames" + (f" instead of {len(known)}" if known else ""))
                solutions[result.level] = inputs


def main(checkpoints: Positional[tuple[Path, ...]]) -> None:
    """Improve the file with every checkpoint.

    Args:
        checkpoints: checkpoint files of the trainer.
    """
    solutions = known_solutions()
    for path in checkpoints:
        improve(solutions, path)
    lines = [f'"{name}" = "{format_inputs(solutions[name])}"\n' for name in sorted(solutions, key=by_number)]
    write_file(levels_folder() / SOLUTIONS_FILE, (HEADER + "".join(lines)).encode())


if __name__ == "__main__":
    tyro.cli(main, description=__doc__)
