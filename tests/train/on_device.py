"""Runs on a stand-in for a GPU: environments, policy and updates on a device that is the processor."""

import numpy as np
import torch

from nclone_env.train.learn.ppo import shuffle
from nclone_env.train.runs import estimate
from nclone_env.train.runs import run as run_module

from ..env.processor import Processor


def as_on_the_processor(seed, number, epochs, count):
    """Return the orders of minibatches, (e, c), of runs in host memory, to compare a run on a device with one."""
    orders = np.zeros((epochs, count), np.int64)
    for epoch, order in enumerate(orders):
        if number.device.type != "meta":
            shuffle(order, seed, int(number), epoch)
    return torch.from_numpy(orders).to(number.device)


def choose_device(monkeypatch, device="stand-in"):
    """Let runs take a device, by default a new stand-in; None: the processor."""
    chosen = Processor() if device == "stand-in" else device
    for module in (run_module, estimate):
        monkeypatch.setattr(module, "learning_device", lambda *arguments: chosen)
    return chosen
