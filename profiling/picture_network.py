"""Samples per second of the picture network forward and backward: layouts, dtypes, threads, parts and trunks.

All forms of a trunk compute the same function of the same parameters; the last columns compare the gradient on player
frames of random play with that of float32. Turns alternate, and ratios are medians over turns, so that background load
affects all rows alike. Rows of one thread are per CPU second, which background load affects least; threads of torch's
own slow down many times over on a busy machine, so ratios to the first row mean nothing there.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from functools import partial
from unittest import mock

import numpy as np
import torch
import torch.nn.functional as F
import tyro
from torch import Tensor, nn

from nclone_env import NPlusPlusVectorEnv, RenderConfig
from nclone_env.train import encoders
from nclone_env.train.encoders import LAYERS, Layers, PictureEncoder
from nclone_env.train.policy import ActorCritic
from profiling.measure import describe, ratios, timed, turns

NAME = "player_frame"
THREADS = 2
PARTS = (32, 64, 128, 256, 512)
Form = Callable[[PictureEncoder, Tensor], Tensor]


def patches(side: int) -> Layers:
    """Return a cheaper trunk: patches of 8 x 8 pixels, then one convolution that keeps at least 6 x 6 places."""
    return ((32, 8, 8), (32, 3, 2 if side > 100 else 1))


def whole(layout: torch.memory_format, dtype: torch.dtype) -> Form:
    """Return a trunk of convolutions over whole pictures, as torch's modules compute them."""

    def features(encoder: PictureEncoder, pictures: Tensor) -> Tensor:
        hidden = pictures.squeeze(-1).to(dtype, memory_format=layout).mul_(1 / 255)
        with torch.autocast("cpu", dtype) if dtype == torch.bfloat16 else nullcontext():
            for layer in encoder.convolutions:
                hidden = F.relu(layer(hidden))
            return F.relu(encoder.last(hidden.permute(0, 2, 3, 1).flatten(1))).float()

    return features


def float32_blocks(encoder: PictureEncoder, pictures: Tensor) -> Tensor:
    """Return the features of the package's encoder, in float32 on any machine."""
    with mock.patch.object(encoders, "convolution_dtype", return_value=torch.float32):
        return encoder(pictures)


def package(encoder: PictureEncoder, pictures: Tensor) -> Tensor:
    """Return the features of the package's encoder."""
    return encoder(pictures)


PLAIN, OURS = "float32, channels first", "the package's encoder"
FORMS: dict[str, Form] = {
    PLAIN: whole(torch.contiguous_format, torch.float32),
    "float32, channels last": whole(torch.channels_last, torch.float32),
    "bfloat16, channels first": whole(torch.contiguous_format, torch.bfloat16),
    "bfloat16, channels last": whole(torch.channels_last, torch.bfloat16),
    "float32, blocks as channels": float32_blocks,
    OURS: package,
}


class Network(nn.Module):
    """A trunk and the towers of a policy, with the gradients of all parameters by parts of a batch."""

    def __init__(self, pictures: Tensor, layers: Layers):
        super().__init__()
        generator = torch.Generator().manual_seed(0)
        self.encoder = PictureEncoder(NAME, tuple(pictures.shape[1:]), layers)
        for layer in (*self.encoder.convolutions, self.encoder.last):
            nn.init.orthogonal_(layer.weight, 2**0.5, generator=generator)
            nn.init.zeros_(layer.bias)
        self.towers = ActorCritic({"features": (self.encoder.width,)}, generator=generator)
        self.pictures = pictures
        self.weights = [torch.randn(len(pictures), generator=generator) for _ in range(2)]

    def gradient(self, form: Form, part: slice) -> Tensor:
        """Return the gradient of all parameters, concatenated, of a policy-gradient loss on a part of the batch."""
        logits, values = self.towers({"features": form(self.encoder, self.pictures[part])})
        actor, critic = (weights[part] for weights in self.weights)
        loss = (torch.log_softmax(logits, dim=1)[:, 0] * actor + values * critic).sum()
        gradients = torch.autograd.grad(loss, list(self.parameters()))
        return torch.cat([gradient.flatten() for gradient in gradients])

    def parts(self, size: int) -> list[slice]:
        """Return the parts of the batch."""
        return [slice(first, first + size) for first in range(0, len(self.pictures), size)]


def frames_of_play(count: int, side: int, frames: int) -> Tensor:
    """Return stacks of player frames (count, frames, side, side, 1) uint8 of random play on the built-in levels."""
    envs = NPlusPlusVectorEnv(
        None,
        count // 8,
        levels=("first-steps", "jumps", "hazards"),
        observations=(NAME,),
        observation={"frame_stack": frames},
        render=RenderConfig.preset(side),
    )
    rng, seen = np.random.default_rng(0), [envs.reset(seed=0)[0][NAME].copy()]
    while len(seen) < 8:
        for _ in range(5):
            observations = envs.step(rng.integers(6, size=envs.num_envs))[0]
        seen.append(observations[NAME].copy())
    envs.close()
    return torch.from_numpy(np.concatenate(seen))


def alone(network: Network, form: Form, size: int, threads: int) -> float:
    """Return samples/s of parts one after another, with threads within each operation; per CPU second with one."""
    torch.set_num_threads(threads)
    clock = time.process_time if threads == 1 else time.perf_counter
    _, seconds = timed(lambda: [network.gradient(form, part) for part in network.parts(size)], clock)
    return len(network.pictures) / seconds


def together(network: Network, form: Form, size: int, pool: ThreadPoolExecutor) -> float:
    """Return samples/s of parts taken by two threads, of which each runs its operations alone."""
    _, seconds = timed(lambda: list(pool.map(partial(network.gradient, form), network.parts(size))))
    return len(network.pictures) / seconds


def difference(network: Network, form: Form) -> str:
    """Return the relative norm of a gradient's difference from that of float32, and its cosine."""
    torch.set_num_threads(THREADS)
    exact, found = (network.gradient(which, slice(512)).double() for which in (FORMS[PLAIN], form))
    cosine = F.cosine_similarity(found, exact, dim=0).item()
    return f"{((found - exact).norm() / exact.norm()).item():.1e}   {cosine:.5f}"


def compare(side: int, frames: int, batch: int, rounds: int) -> None:
    """Print the table of one picture size."""
    pictures = frames_of_play(batch, side, frames)
    today, cheap = (Network(pictures, layers) for layers in (LAYERS, patches(side)))
    pool = ThreadPoolExecutor(THREADS, initializer=torch.set_num_threads, initargs=(1,))
    cases: dict[str, tuple[Callable[[], float], str]] = {}
    for threads, title in ((THREADS, f"{THREADS} torch threads"), (1, "1, per CPU second")):
        for name, form in FORMS.items():
            gradient = difference(today, form) if threads == THREADS else ""
            cases[f"{name}; {title}"] = (partial(alone, today, form, 512, threads), gradient)
    for title, network, form, sizes in (
        (PLAIN, today, FORMS[PLAIN], (64, 512)),
        (OURS, today, package, PARTS),
        (f"patches {patches(side)}", cheap, package, (64, 128)),
    ):
        gradient = difference(network, form) if network is cheap else ""
        for size in sizes:
            cases[f"{title}; 2 threads, parts of {size}"] = (partial(together, network, form, size, pool), gradient)
    tasks = [task for task, _ in cases.values()]
    turns(1, tasks)  # first calls choose kernels
    speeds = turns(rounds, tasks)
    print(
        f"\n{side} x {side} x {frames}, batch {batch}\n{'samples/s, median':>68} (best)  ratio  gradient: norm   cosine"
    )
    for row, (name, (_, gradient)) in enumerate(cases.items()):
        median, best, ratio = np.median(speeds[:, row]), speeds[:, row].max(), ratios(speeds)[row]
        print(f"{name:<58} {median:9.0f} ({best:6.0f})  {ratio:5.2f}  {gradient}", flush=True)


def main(sides: tuple[int, ...] = (128, 84, 64), frames: int = 2, batch: int = 1024, rounds: int = 7) -> None:
    """Compare all forms for each picture size.

    Args:
        sides: sides of the player frame, each a preset.
        frames: pictures of a stack.
        batch: samples of a turn, a multiple of 512.
        rounds: turns; the figures are medians.
    """
    print(describe(), f"PyTorch {torch.__version__}; load {os.getloadavg()[0]:.1f} before")
    for side in sides:
        compare(side, frames, batch, rounds)
    print(f"\nload {os.getloadavg()[0]:.1f} after")


if __name__ == "__main__":
    tyro.cli(main, description=__doc__)
