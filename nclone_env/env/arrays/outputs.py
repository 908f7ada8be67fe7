"""The outputs of a reset or step, and the two contracts of their ownership.

======== =================================================== =======================================================
contract observations                                        rewards, terminations, truncations, info
======== =================================================== =======================================================
default  recycled: valid while any reference to them exists  the same
``out=`` arrays of the caller                                arrays of the caller that ``out`` has, else two in turn
======== =================================================== =======================================================

The arrays of ``final_obs`` are recycled in both. The next call with ``out=`` empties the dict of them.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from nclone_env.env.arrays.buffers import ArraySpec, Buffers, ColumnSpec, alone, check_buffers, make_buffers
from nclone_env.env.arrays.final import FinalPool, FinalRows
from nclone_env.env.compiled.records import OUTCOMES, RESULT, WON
from nclone_env.memory import MemoryNode, array_group, arrays_node

COLUMNS = ("level", "start", "frames", "outcome", "gold", "episode_frames", "episode_steps", "episode_return")
"""Columns of ``info``, fields of ``RESULT``."""
_PLURALS = {"reward": "rewards", "terminated": "terminations", "truncated": "truncations"}
_NUMBERS = ("frames", "gold", "episode_frames", "episode_steps", "episode_return")


def _column(result: str) -> ColumnSpec:
    others = (np.dtype(np.float32),) if result == "reward" else ()
    return ColumnSpec(_PLURALS.get(result, result), (), RESULT[result], result, (RESULT[result], *others))


RESULT_SPECS = tuple(_column(result) for result in (*_PLURALS, *COLUMNS))
_ENDED = ColumnSpec("ended", (), np.dtype(np.bool_), "", (np.dtype(np.bool_),))


@dataclass(eq=False)
class Outputs:
    """The arrays that one call returns for n environments.

    Attributes:
        observations: arrays (n, ...) by name.
        columns: arrays (n,) by the names of ``RESULT_SPECS``.
        final: the last observations of episodes; None unless for a step in same-step mode.
        ended: (n,) bool, mask of the episodes that ended, in such a step.
        info: the ``info`` dict; after :meth:`select_info` with ``final_obs`` if any episode ended.
        only: name of the array that is the observation; None: observations are dicts.
    """

    observations: Buffers
    columns: Buffers
    ended: np.ndarray
    info: dict[str, Any]
    final: FinalRows | None = None
    final_obs: Buffers = field(default_factory=dict)
    only: str | None = None
    _plain: dict[str, Any] = field(default_factory=dict)
    _with_final: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, observations: Buffers, columns: Buffers, all_mask: np.ndarray, only: str | None = None) -> Outputs:
        """Return outputs over arrays; ``columns`` includes ``ended``, ``all_mask`` is (n,) True."""
        info: dict[str, Any] = {}
        for name in COLUMNS:
            info[name], info[f"_{name}"] = columns[name], all_mask
        return cls(observations, columns, columns["ended"], info, only=only, _plain=info)

    def fill(self, results: np.ndarray) -> None:
        """Copy the (n,) ``RESULT`` records into the columns."""
        for spec in RESULT_SPECS:
            self.columns[spec.name][...] = results[spec.result]
        if self.final is not None:
            np.logical_or(self.columns["terminations"], self.columns["truncations"], out=self.ended)

    def select_info(self) -> None:
        """Put the final observations into the info if there are any."""
        if self.final is None or not self.final.length:
            self.info = self._plain
            return
        for name in self.final.arrays:
            self.final_obs[name] = self.final.view(name)
        self.info = self.info_with_final()
        if self.only is not None:
            self.info["final_obs"] = self.final_obs[self.only]

    def drop_final(self) -> None:
        """Give up the final observations, which are reused unless the caller keeps them."""
        self.final = None
        self.final_obs.clear()
        if self.only is not None:
            self._with_final.pop("final_obs", None)

    def info_with_final(self) -> dict[str, Any]:
        """Return the info for calls in which episodes ended, made on first use."""
        if not self._with_final:
            final_info: dict[str, Any] = {}
            for name in COLUMNS:
                final_info[name], final_info[f"_{name}"] = self.columns[name], self.ended
            finals = {"final_obs": self.final_obs, "final_info": final_info}
            self._with_final = {**self._plain, **finals, **{f"_{name}": self.ended for name in finals}}
        return self._with_final


class OutputMemory:
    """The memory for the outputs of calls on n environments, whose observation is one array (``only``) or a dict."""

    def __init__(self, specs: Sequence[ArraySpec], num_envs: int, keeps_final: bool, only: str | None = None):
        self._specs, self._num_envs, self._only = tuple(specs), num_envs, only
        self._all_mask = np.ones(num_envs, dtype=np.bool_)
        self._all_mask.flags.writeable = False
        self._observations = RecyclingPool(self._specs, num_envs)
        self._columns = RecyclingPool((*RESULT_SPECS, _ENDED), num_envs)
        self._finals = FinalPool(self._specs, num_envs) if keeps_final else None
        self._beside_out: list[Outputs] = []
        self._turns = itertools.cycle(range(2))  # two in turn: the results of a call outlive the next one

    def take(self, out: Mapping[str, np.ndarray] | None) -> Outputs:
        """Return the outputs for the next call to fill, in arrays of the caller if there are any."""
        if out is not None:
            return self._written_into(out)
        return Outputs.of(self._observations.take(), self._columns.take(), self._all_mask, self._only)

    def take_final(self) -> FinalRows | None:
        """Return the memory for the final observations of the next step; None unless calls return them."""
        return self._finals.take() if self._finals else None

    def _written_into(self, out: Mapping[str, np.ndarray]) -> Outputs:
        if isinstance(out, Mapping):  # read once, as plain arrays: what is checked is what is written
            out = {name: np.asarray(a) if isinstance(a, np.ndarray) else a for name, a in out.items()}
        check_buffers(out, self._specs, RESULT_SPECS, self._num_envs)
        turn = next(self._turns)
        if turn == len(self._beside_out):
            columns = make_buffers((*RESULT_SPECS, _ENDED), self._num_envs)
            self._beside_out.append(Outputs.of({}, columns, self._all_mask, self._only))
            self._beside_out[-1].info_with_final()
        for made in self._beside_out:
            made.drop_final()
        outputs = self._beside_out[turn]
        outputs.observations = {spec.name: out[spec.name] for spec in self._specs}
        if len(out) == len(self._specs):
            return outputs
        columns = {name: out.get(name, array) for name, array in outputs.columns.items()}
        with_columns = Outputs.of(outputs.observations, columns, self._all_mask, self._only)
        with_columns.final_obs = outputs.final_obs
        return with_columns

    def memory(self) -> MemoryNode:
        """Return the bytes of all arrays."""
        pools = (self._observations.memory("recycled observations"), self._columns.memory("recycled results"))
        beside_out = MemoryNode(
            "results beside out",
            children=tuple(
                array_group(f"columns {number}", outputs.columns, shared=False)
                for number, outputs in enumerate(self._beside_out)
            ),
        )
        finals = (self._finals.memory(),) if self._finals else ()
        return MemoryNode("outputs", children=tuple(node for node in (*pools, beside_out, *finals) if node.total_bytes))


class RecyclingPool:
    """Hands out arrays that are safe to keep, and reuses them once they are unreferenced.

    It hands out views. NumPy makes every further view refer to the array that owns the memory too, so the reference
    count of the owner shows whether any view is left. Arrays are allocated on first use.
    """

    __slots__ = ("_made", "_num_envs", "_specs")

    def __init__(self, specs: Sequence[ArraySpec], num_envs: int):
        self._specs = tuple(specs)
        self._made: tuple[list[np.ndarray], ...] = tuple([] for _ in specs)
        self._num_envs = num_envs

    def take(self) -> Buffers:
        """Return by name a view of an unreferenced array, allocated if there is none; its contents are undefined."""
        return {spec.name: self._free(spec, made)[:] for spec, made in zip(self._specs, self._made, strict=True)}

    def _free(self, spec: ArraySpec, made: list[np.ndarray]) -> np.ndarray:
        for array in made:
            if sys.getrefcount(array) == _UNREFERENCED:
                return array
        made.append(np.zeros((self._num_envs, *spec.shape), spec.dtype))
        return made[-1]

    def memory(self, name: str) -> MemoryNode:
        """Return the bytes of all arrays."""
        made = ((spec.name, arrays) for spec, arrays in zip(self._specs, self._made, strict=True) if arrays)
        return MemoryNode(
            name, children=tuple(arrays_node(f"{each} x {len(arrays)}", arrays, shared=False) for each, arrays in made)
        )


def _unreferenced_count() -> int:
    """Return the reference count of an unreferenced array in the loop of ``RecyclingPool._free``."""
    arrays = [np.zeros(1)]
    for array in arrays:
        return sys.getrefcount(array)
    raise AssertionError


_UNREFERENCED = _unreferenced_count()


def single_result(
    results: np.ndarray, index: int, level_names: Sequence[str]
) -> tuple[float, bool, bool, dict[str, Any]]:
    """Return reward, terminated, truncated and ``info`` of one environment, from (n,) ``RESULT`` records."""
    # all fields of RESULT at once: an access to each would make a NumPy scalar
    reward, total, frames, episode_frames, steps, level, _, gold, outcome, *ended = results.item(index)
    info = {
        "level": level_names[level],
        "frames": frames,
        "outcome": OUTCOMES[outcome],
        "is_success": outcome == WON,
        "gold": gold,
        "episode_frames": episode_frames,
        "episode_steps": steps,
        "episode_return": total,
    }
    return reward, *ended, info


def gathered_info(
    outputs: Outputs, ninjas: Any, level_names: Sequence[str], only: str | None, mask: np.ndarray | None = None
) -> dict[str, Any]:
    """Return the info of a call, of all environments or those in a mask, as Gymnasium's ``SyncVectorEnv`` gathers it.

    All of its arrays are new. The (n,) ninjas describe episodes that began in the same step as another ended.
    """
    columns, ended = outputs.columns, outputs.ended
    mask = np.ones(len(ended), dtype=np.bool_) if mask is None else mask
    if outputs.final is None or not outputs.final.length:
        return _gathered(columns, level_names, mask)
    begun = {name: np.where(ended, 0, columns[name]) for name in ("outcome", *_NUMBERS)}
    for name, of_ninja in (("level", "level"), ("gold", "gold"), ("episode_frames", "frame")):
        begun[name] = np.where(ended, ninjas[of_ninja], columns[name])
    info = _gathered(begun, level_names, mask)
    arrays = {name: outputs.final.view(name) for name in outputs.final.arrays}
    info["final_obs"] = last = np.full(len(ended), None, dtype=object)
    for row, index in enumerate(np.flatnonzero(ended)):
        last[index] = alone({name: array[row].copy() for name, array in arrays.items()}, only)
    info["final_info"] = _gathered(columns, level_names, ended)
    info["_final_obs"], info["_final_info"] = ended.copy(), ended.copy()
    return info


def _gathered(columns: Buffers, level_names: Sequence[str], mask: np.ndarray) -> dict[str, Any]:
    """Return the columns of the environments in ``mask``, (n,) bool."""
    values: Buffers = {
        "level": _names(level_names, columns["level"]),
        "outcome": _names(OUTCOMES, columns["outcome"]),
        "is_success": columns["outcome"] == WON,
        **{name: columns[name] for name in _NUMBERS},
    }
    info: dict[str, Any] = {}
    for name, column in values.items():
        empty = None if column.dtype == object else 0
        info[name] = np.full(len(mask), empty, dtype=int if column.dtype.kind == "i" else column.dtype)
        info[name][mask] = column[mask]
        info[f"_{name}"] = mask.copy()
    return info


def _names(names: Sequence[str], numbers: np.ndarray) -> np.ndarray:
    return np.array([names[number] for number in numbers.tolist()], dtype=object)
