"""The outputs of a reset or step, and the three contracts of their ownership.

=========== ==================================================== ================================================
contract    observations                                         rewards, terminations, truncations, info, final_obs
=========== ==================================================== ================================================
default     recycled: valid while any reference to them exists   the same
``out=``    arrays of the caller                                 arrays of the caller that ``out`` has, else a ring
                                                                 of 2; one ``final_obs``, valid until the next call
copy=False  a ring of k: valid until the k-th call after         the same ring
=========== ==================================================== ================================================
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from nclone_env.env.arrays.buffers import ArraySpec, Buffers, check_buffers, make_buffers
from nclone_env.env.arrays.pool import RecyclingPool, Ring
from nclone_env.env.compiled.records import RESULT
from nclone_env.memory_tree import MemoryNode, array_group

COLUMNS = ("level", "start", "frames", "outcome", "gold", "episode_frames", "episode_steps", "episode_return")
"""Columns of ``info``, fields of ``RESULT``."""
_PLURALS = {"reward": "rewards", "terminated": "terminations", "truncated": "truncations"}


class ColumnSpec(NamedTuple):
    """A column of the results: its name in ``out`` and ``info``, and its field of ``RESULT``."""

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype
    result: str


RESULT_SPECS = tuple(ColumnSpec(_PLURALS.get(name, name), (), RESULT[name], name) for name in (*_PLURALS, *COLUMNS))
_ENDED = ColumnSpec("ended", (), np.dtype(np.bool_), "")


@dataclass(eq=False)
class Outputs:
    """The arrays that one call returns for n environments.

    Attributes:
        observations: arrays (n, ...) by name.
        columns: arrays (n,) by the names of ``RESULT_SPECS``.
        final: last observations of episodes, arrays (n, ...) by name; empty unless in same-step mode.
        ended: (n,) bool, mask of the episodes that ended.
        info: the ``info`` dict; after :meth:`fill` with ``final_obs`` if any episode ended.
    """

    observations: Buffers
    columns: Buffers
    final: Buffers
    ended: np.ndarray
    info: dict[str, Any]
    _plain: dict[str, Any] = field(default_factory=dict)
    _with_final: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, observations: Buffers, columns: Buffers, final: Buffers, all_mask: np.ndarray) -> Outputs:
        """Return outputs over arrays; ``columns`` includes ``ended``, ``all_mask`` is (n,) True."""
        info: dict[str, Any] = {}
        for name in COLUMNS:
            info[name], info[f"_{name}"] = columns[name], all_mask
        return cls(observations, columns, final, columns["ended"], info, info)

    def fill(self, results: np.ndarray) -> None:
        """Copy the (n,) ``RESULT`` records into the columns, and select the info."""
        for spec in RESULT_SPECS:
            self.columns[spec.name][...] = results[spec.result]
        if self.final:
            np.logical_or(self.columns["terminations"], self.columns["truncations"], out=self.ended)
            some = self.ended.item(self.ended.argmax())  # ``any`` would allocate a kilobyte
            self.info = self.info_with_final() if some else self._plain

    def info_with_final(self) -> dict[str, Any]:
        """Return the info for calls in which episodes ended, made on first use."""
        if not self._with_final:
            final_info: dict[str, Any] = {}
            for name in COLUMNS:
                final_info[name], final_info[f"_{name}"] = self.columns[name], self.ended
            finals = {"final_obs": self.final, "final_info": final_info}
            self._with_final = {**self._plain, **finals, **{f"_{name}": self.ended for name in finals}}
        return self._with_final


class OutputMemory:
    """The memory for the outputs of calls on n environments.

    Args:
        specs: observations.
        num_envs: n.
        keeps_final: whether calls return ``final_obs``.
        ring: number of batches used in turn; None: recycled arrays.
    """

    def __init__(self, specs: Sequence[ArraySpec], num_envs: int, keeps_final: bool, ring: int | None):
        self._specs, self._num_envs = tuple(specs), num_envs
        self._final_specs = self._specs if keeps_final else ()
        self._all_mask = np.ones(num_envs, dtype=np.bool_)
        self._all_mask.flags.writeable = False
        self._observations = RecyclingPool(self._specs, num_envs)
        self._columns = RecyclingPool((*RESULT_SPECS, _ENDED), num_envs)
        self._final = RecyclingPool(self._final_specs, num_envs)
        self._ring = Ring(self._fixed, ring) if ring else None
        self._beside_out: Ring[Outputs] = Ring(self._beside, 2)
        self._final_beside: Buffers = {}

    def take(self, out: Mapping[str, np.ndarray] | None) -> Outputs:
        """Return the outputs for the next call to fill.

        Args:
            out: arrays of the caller, or None.

        Raises:
            BufferError: if ``out`` does not fit.
        """
        if out is not None:
            return self._written_into(out)
        if self._ring is not None:
            return self._ring.take()
        return Outputs.of(self._observations.take(), self._columns.take(), self._final.take(), self._all_mask)

    def take_observations(self) -> Buffers:
        """Return recycled observations alone."""
        return self._observations.take()

    def _written_into(self, out: Mapping[str, np.ndarray]) -> Outputs:
        check_buffers(out, self._specs, RESULT_SPECS, self._num_envs)
        outputs = self._beside_out.take()
        outputs.observations = {spec.name: out[spec.name] for spec in self._specs}
        if len(out) == len(self._specs):
            return outputs
        columns = {name: out.get(name, array) for name, array in outputs.columns.items()}
        return Outputs.of(outputs.observations, columns, outputs.final, self._all_mask)

    def _fixed(self) -> Outputs:
        specs = self._specs, (*RESULT_SPECS, _ENDED), self._final_specs
        return self._prepared(*(make_buffers(group, self._num_envs) for group in specs))

    def _beside(self) -> Outputs:
        if not self._final_beside:
            self._final_beside = make_buffers(self._final_specs, self._num_envs)
        return self._prepared({}, make_buffers((*RESULT_SPECS, _ENDED), self._num_envs), self._final_beside)

    def _prepared(self, observations: Buffers, columns: Buffers, final: Buffers) -> Outputs:
        outputs = Outputs.of(observations, columns, final, self._all_mask)
        outputs.info_with_final()
        return outputs

    def memory(self) -> MemoryNode:
        """Return the bytes of pools and rings."""
        pools = (
            self._observations.memory("recycled observations"),
            self._columns.memory("recycled results"),
            self._final.memory("recycled final observations"),
        )
        rings = (
            _ring_memory("ring", self._ring, ("observations", "columns", "final")),
            _ring_memory("ring beside out", self._beside_out, ("columns",)),
            array_group("final observations beside out", self._final_beside, shared=False),
        )
        return MemoryNode("outputs", children=tuple(node for node in (*pools, *rings) if node.total_bytes))


def _ring_memory(name: str, ring: Ring[Outputs] | None, owned: Sequence[str]) -> MemoryNode:
    """Return the bytes of the arrays that a ring owns; ``owned`` names the attributes of its outputs."""
    groups = []
    for number, outputs in enumerate(ring.made if ring else ()):
        groups += [array_group(f"{name} {number}", getattr(outputs, name), shared=False) for name in owned]
    return MemoryNode(name, children=tuple(groups))
