"""A device for the tests of ``env.cuda`` that keeps its arrays in memory and runs programs on the processor."""

import numpy as np
import pytest

from nclone_env.env.cuda import PROGRAMS, mapped
from nclone_env.jit import specialised

torch = pytest.importorskip("torch", reason="needs the extra train")


class Processor:
    """Runs the kernels that a GPU runs, one environment after another, in the order of ``order``."""

    place = torch.device("cpu")

    def __init__(self, order=lambda count: range(count)):
        self.order = order
        self.launches: list[str] = []

    def free_bytes(self):
        return None

    def program(self, name, arguments):
        def array_of(array, tensor):
            size = int(np.prod(array.shape)) * array.itemsize
            made = tensor.view(torch.uint8).reshape(-1).numpy()[:size].view(array.dtype).reshape(array.shape)
            made.flags.writeable = array.is_written
            return made

        arrays = mapped(arguments, lambda array: array_of(array, array.tensor))
        kernel = specialised(PROGRAMS[name], *arrays, 0)

        def run(count, replaced):
            self.launches.append(name)
            of = mapped(arguments, lambda array: array_of(array, replaced.get(array, array.tensor)))
            for index in self.order(count):
                kernel(*of, index)

        return run
