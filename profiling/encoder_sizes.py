"""How much of ``game_state`` each encoder recovers from its observation, and what it costs, by size.

An encoder and one linear layer are fitted to elements of ``game_state`` that its observation shows at least in part, on
random play on the built-in levels; printed are the share of the variance explained on episodes of another seed and the
CPU microseconds per sample forward and backward. It says which sizes see more, not which of them learn to play faster.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
import torch
import tyro
from torch import Tensor, nn

from nclone_env import NPlusPlusVectorEnv, RenderConfig
from nclone_env.obs.spec import GAME_STATE
from nclone_env.train.network.encoders import Encoder, EntityEncoder, GridEncoder, PictureEncoder
from profiling.convolutions import ConvolutionEncoder
from profiling.measure import describe

Data = dict[str, Tensor]
NUM_ENVS, BATCH, FRAMES, LEARNING_RATE = 64, 256, 2, 1e-3
OBSERVATIONS = ("game_state", "player_frame", "entity_states", "locals", "reachability")
WALLS = ("wall_normal", "clearance_left", "clearance_right", "clearance_up", "clearance_down")
PATH = ("path_direction_x", "path_direction_y", "lookahead_x", "lookahead_y")
OBJECTS = ("objective_x", "objective_y", "mine_x", "mine_y", "mine_proximity", "exit_open")
MOTION = ("vx", "vy", "airborne", "floor_normal_x", "floor_normal_y", "mine_x", "mine_y", "mine_proximity")


def play(side: int, samples: int, seed: int) -> Data:
    """Return observations by name, stacked, of random play in which an action is held for six steps on average."""
    envs = NPlusPlusVectorEnv(
        None,
        NUM_ENVS,
        levels=("first-steps", "jumps", "hazards"),
        observations=OBSERVATIONS,
        observation={"frame_stack": FRAMES},
        render=RenderConfig(side),
        max_frames=1200,
    )
    rng, first = np.random.default_rng(seed), envs.reset(seed=seed)[0]
    rows: dict[str, list[np.ndarray]] = {name: [] for name in first}
    actions, kept = rng.integers(6, size=NUM_ENVS), 0
    while kept < samples:
        actions = np.where(rng.random(NUM_ENVS) < 1 / 6, rng.integers(6, size=NUM_ENVS), actions)
        observations = envs.step(actions)[0]
        chosen = rng.random(NUM_ENVS) < 0.5  # neighbouring frames say little more than one
        kept += int(chosen.sum())
        for name, array in observations.items():
            rows[name].append(array[chosen])
    envs.close()
    return {name: torch.from_numpy(np.concatenate(arrays)) for name, arrays in rows.items()}


def fit(encoder: Encoder, facts: tuple[str, ...], train: Data, test: Data, epochs: int) -> tuple[float, float]:
    """Return the share of variance explained on the test data and the CPU microseconds per sample of the training.

    Facts that never change in the data are left out.
    """
    columns = [
        index
        for index, feature in enumerate(GAME_STATE)
        if feature.name in facts and all(data["game_state"][:, -1, index].std() > 0 for data in (train, test))
    ]
    wanted = train["game_state"][:, -1, columns]
    mean, deviation = wanted.mean(dim=0), wanted.std(dim=0) + 1e-6
    head = nn.Linear(encoder.width, len(columns))
    parameters = [*encoder.parameters(), *head.parameters()]
    optimiser = torch.optim.Adam(parameters, LEARNING_RATE)
    rows = [order[: len(wanted) // BATCH * BATCH].view(-1, BATCH) for order in shuffled(len(wanted), epochs)]
    schedule = torch.optim.lr_scheduler.LinearLR(optimiser, 1.0, 0.0, sum(len(epoch) for epoch in rows))
    seconds = 0.0
    for batch in torch.cat(rows):
        inputs, targets = [train[name][batch] for name in encoder.inputs], (wanted[batch] - mean) / deviation
        started = time.process_time()
        loss = (head(encoder(*inputs)) - targets).square().mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        seconds += time.process_time() - started
        schedule.step()
    targets = (test["game_state"][:, -1, columns] - mean) / deviation
    with torch.inference_mode():
        parts = zip(*(test[name].split(BATCH) for name in encoder.inputs), strict=True)
        found = torch.cat([head(encoder(*inputs)) for inputs in parts])
    explained = 1 - (found - targets).square().mean(dim=0) / targets.var(dim=0)
    return explained.mean().item(), seconds / torch.cat(rows).numel() * 1e6


def shuffled(count: int, epochs: int) -> Iterator[Tensor]:
    """Yield the order of each epoch."""
    generator = torch.Generator().manual_seed(0)
    return (torch.randperm(count, generator=generator) for _ in range(epochs))


def entity_encoder(units: int, shapes: dict[str, tuple[int, ...]]) -> EntityEncoder:
    """Return an encoder of another width."""
    return type("Sized", (EntityEncoder,), {"units": units})(shapes)


def candidates(side: int, train: Data) -> Iterator[tuple[str, tuple[str, ...], Callable[[], Encoder]]]:
    """Yield title, facts and encoder of each row; all encode stacks."""
    shapes = {name: tuple(array.shape[1:]) for name, array in train.items()}
    for title, kind in (("patches, the package's", PictureEncoder), ("convolutions", ConvolutionEncoder)):
        picture = partial(kind, "player_frame", shapes["player_frame"])
        yield f"player_frame of {side}, {title}", MOTION + WALLS, picture
    for units in (16, 32, 64, 128):
        yield f"entity_states, {units} units", OBJECTS, partial(entity_encoder, units, shapes)
    yield "locals", WALLS + PATH, partial(GridEncoder, "locals", shapes["locals"])


def main(side: int = 128, samples: int = 12_800, epochs: int = 6, seeds: int = 2) -> None:
    """Fit every encoder and print what it explains and costs.

    Args:
        side: side of the player frame, a preset.
        samples: samples to train on; a quarter as many test.
        epochs: passes over them.
        seeds: seeds of the initial weights, one column each.
    """
    torch.set_num_threads(1)
    print(describe())
    train, test = play(side, samples, seed=0), play(side, samples // 4, seed=1)
    print(f"{'encoder':<60} us/sample   explained, by seed")
    for title, facts, make in candidates(side, train):
        results = []
        for seed in range(seeds):
            torch.manual_seed(seed)
            results.append(fit(make(), facts, train, test, epochs))
        shares = "  ".join(f"{share:.3f}" for share, _ in results)
        print(f"{title:<60} {min(cost for _, cost in results):9.1f}   {shares}", flush=True)


if __name__ == "__main__":
    tyro.cli(main, description=__doc__)
