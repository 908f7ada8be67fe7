"""The vector environment on a GPU: worlds, observations and results stay there; the kernels are those of the processor.

Steps, and the observations after a reset, are *programs*: a kernel with a thread for each environment
(``env.compiled.alone``). Everything rare (snapshots, seeds, level weights, exchanges) is done by the batch of the
processor's environment: its state is read from the device before the call and written back after it, so both
environments have one implementation of each.

A :class:`Device` keeps arrays and runs programs; tests have one that runs them on the processor.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from gymnasium.vector import AutoresetMode

from nclone_env import errors
from nclone_env.config import EnvironmentConfig, config_from
from nclone_env.env.arrays.buffers import ColumnSpec, alone, make_buffers
from nclone_env.env.arrays.outputs import COLUMNS, RESULT_SPECS
from nclone_env.env.base import AFTER_RESET, BROKEN, NOT_CLOSED, RUNNING, Phase
from nclone_env.env.compiled.alone import mask_alone, outcomes_alone, reset_alone, step_alone
from nclone_env.env.compiled.masks import MASK_AT_END
from nclone_env.env.compiled.records import EPISODE, RESULT
from nclone_env.env.compiled.step_arrays import FinalArrays
from nclone_env.env.spaces import check_actions
from nclone_env.env.vector import NPlusPlusVectorEnv, Step
from nclone_env.errors import ActionError, ConfigError, optional_module, shortened
from nclone_env.game import NUM_ACTIONS, NUM_DIRECTIONS
from nclone_env.jit.cuda import Entry, block_of, kept_ptx
from nclone_env.machine import check_fits
from nclone_env.memory import MemoryNode
from nclone_env.obs import PROGRESS, SCRATCH_WORLDS, VALUES, kernel_view, words
from nclone_env.options import mapping
from nclone_env.sim import NO_TRAIL, WorldArrays, copy_world, make_worlds

PROGRAMS: dict[str, Any] = {
    "step": step_alone,
    "reset": reset_alone,
    "masks": mask_alone,
    "outcomes": outcomes_alone,
}
"""Kernels by the name of their program; the last parameter is the environment."""
NOT_ON_DEVICES = ("graph", "reachability")
"""Observations that need caches of the processor."""


class DeviceArray:
    """An array on a device, as programs take it: ``tensor``, uint8, is its bytes; they write it if ``is_written``."""

    __slots__ = ("dtype", "is_written", "shape", "tensor")

    def __init__(self, tensor: Any, dtype: np.dtype, shape: tuple[int, ...], is_written: bool = True):
        self.tensor, self.dtype, self.shape, self.is_written = tensor, dtype, shape, is_written

    @property
    def address(self) -> int:
        """Where it begins."""
        return self.tensor.data_ptr()

    @property
    def itemsize(self) -> int:
        """Bytes of an item."""
        return self.dtype.itemsize


class Device(Protocol):
    """Where environments live."""

    place: Any
    """As ``torch.device`` takes it."""

    def free_bytes(self) -> int | None:
        """Return the memory that is left; None if it is unknown."""

    def program(self, name: str, arguments: tuple[Any, ...]) -> Callable[[int, Mapping[DeviceArray, Any]], None]:
        """Return a program of ``PROGRAMS`` with arguments, nested tuples of :class:`DeviceArray`.

        It takes the number of threads, and tensors to read or write in the place of those of some arrays.
        """


class NPlusPlusCudaVectorEnv(NPlusPlusVectorEnv):
    """``num_envs`` environments on a GPU, with the bits of :class:`NPlusPlusVectorEnv`.

    Options, seeds, spaces, autoreset modes and calls are the same. What a call returns are tensors on the device: they
    are written again by the next call; copy what is to be kept, or pass rows of your own in ``out``. A step reads
    actions, (n,) int64 of the device, where they are, waits for nothing, and can be captured in a CUDA graph, which is
    good until levels are exchanged or other start states are set.

    In same-step mode ``final_obs`` has a row for each environment, as the columns of ``final_info``, and both are
    always there: rows in which ``_final_obs`` is False are undefined.

    An action on the device that is not 0..5 leaves its environment as it is. The next call that reads the state
    (:meth:`synchronize`, ``reset``, ``get_state`` ...) raises ``ActionError``.

    Every world has room for the largest level of the set; :meth:`memory` tells how much that is.

    Args:
        device: ``"cuda"`` or ``"cuda:1"``, or a :class:`Device`.
        num_threads, reward_function, observation_function, gymnasium_infos: left as they are.
        Others as of :class:`NPlusPlusVectorEnv`.

    Raises:
        ConfigError: if there is no such device, or it cannot do what is asked: ``graph``, ``reachability``, frame
            stacks, functions of your own.
        MemoryLimitError: if so many environments need more memory than the device has left.
    """

    def __init__(
        self,
        config: EnvironmentConfig | None = None,
        num_envs: int = 1,
        *,
        device: str | Device = "cuda",
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        max_episode_steps: int | None = None,
        num_threads: None = None,
        reward_function: None = None,
        observation_function: None = None,
        gymnasium_infos: bool = False,
        **fields: Any,
    ):
        self.closed = True
        self._device: Device = device if hasattr(device, "program") else device_of(device)  # type: ignore[assignment]
        self._torch = optional_module("torch", "train")
        chosen = config_from(config, fields)
        refused = {"reward_function": reward_function, "observation_function": observation_function}
        _check_possible(chosen, num_threads=num_threads, **refused)
        if gymnasium_infos:
            raise ConfigError("gymnasium_infos: expected False with device='cuda', as names are objects, got True")
        super().__init__(
            chosen, num_envs, autoreset_mode=autoreset_mode, num_threads=1, max_episode_steps=max_episode_steps
        )
        self.closed = True
        self._keeps_final = self.autoreset_mode is AutoresetMode.SAME_STEP
        self._check_fits()
        self._outputs = _Outputs(self._rows_of)  # type: ignore[assignment]
        self._resident: dict[int, tuple[np.ndarray, DeviceArray]] = {}
        self._allocate()
        self.closed = False

    def _check_fits(self) -> None:
        """Reject what the device has no memory for, and levels on which orders of entry would have to be renumbered."""
        config, free = self.config, self._device.free_bytes()
        if self._batch._enters_often:
            raise ConfigError("max_frames: expected fewer with device='cuda' and so many entities; lower max_frames")
        scratch = {"action_outcomes": SCRATCH_WORLDS + self._keeps_final, "action_mask": NUM_ACTIONS}
        worlds = 1 + sum(scratch.get(name, 0) for name in config.observations)
        seen = sum(math.prod(spec.shape) * spec.dtype.itemsize for spec in self._batch.specs)
        each = worlds * make_worlds(1, self._batch.level_set, config.max_frames).memory().total_bytes
        each += seen * (1 + self._keeps_final) + EPISODE.itemsize + RESULT.itemsize
        if free is not None:
            check_fits("num_envs", self.num_envs, each, limit=free)

    def _allocate(self) -> None:
        """Allocate everything on the device."""
        torch, config, count, specs = self._torch, self.config, self.num_envs, self._batch.specs
        self._actions = self._taken = self._tensor(count, np.int64)
        self._refused = self._zeros((1,), np.int64)
        self._mask = self._zeros((count,), np.bool_)
        self._rows = {spec.name: self._tensor((count, *spec.shape), spec.dtype) for spec in specs}
        self._final_rows: dict[str, Any] = {}
        if self._keeps_final:
            self._final_rows = {spec.name: self._tensor((count, *spec.shape), spec.dtype) for spec in specs}
            if "action_mask" in self._final_rows:
                self._final_rows["action_mask"][:] = torch.tensor(MASK_AT_END, dtype=torch.int8)
        self._ended = self._tensor(count, np.bool_)
        self._all = torch.ones(count, dtype=torch.bool, device=self._device.place)
        self._fit_worlds()
        levels, frames = self._batch.level_set, config.max_frames
        self._scratch: dict[str, Any] = {}
        if "action_mask" in config.observations:
            self._scratch["masks"] = self._uploaded(make_worlds(NUM_ACTIONS * count, levels, frames))
        if "action_outcomes" in config.observations:
            longest = frames + config.observation.outcome_frames
            self._scratch["outcomes"] = self._uploaded(make_worlds(SCRATCH_WORLDS * count, levels, longest))
            self._scratch["progress"] = self._zeros((count, PROGRESS), np.int64)
            self._scratch["values"] = self._zeros((count, VALUES), np.float64)
            self._scratch["rows"] = self._uploaded(np.arange(count, dtype=np.int32))
            self._scratch["all"] = self._zeros((0,), np.int32)
            self._scratch["ended"] = self._uploaded(make_worlds(count * self._keeps_final, levels, frames))
        self._state: dict[str, Any] = {}
        self._plan: dict[str, Any] = {}
        self._pulled: tuple[str, ...] = ()
        self._push()

    def _tensor(self, shape: Any, dtype: Any) -> Any:
        return self._torch.zeros(shape, dtype=self._kind(np.dtype(dtype)), device=self._device.place)

    def _kind(self, dtype: np.dtype) -> Any:
        return getattr(self._torch, "bool" if dtype == np.bool_ else dtype.name)

    def _zeros(self, shape: tuple[int, ...], dtype: Any) -> Any:
        size = math.prod(shape) * np.dtype(dtype).itemsize
        return DeviceArray(self._tensor(max(size, 1), np.uint8), np.dtype(dtype), shape)

    def _uploaded(self, value: Any) -> Any:
        """Return copies on the device of the arrays in nested tuples."""
        return mapped(value, self._upload)

    def _upload(self, array: np.ndarray) -> Any:
        content = np.ascontiguousarray(array).reshape(-1).view(np.uint8) if array.size else np.zeros(1, np.uint8)
        tensor = self._torch.from_numpy(content.copy()).to(self._device.place)
        return DeviceArray(tensor, array.dtype, array.shape, array.flags.writeable)

    def _keep(self, array: np.ndarray) -> Any:
        """Return the copy on the device of an array that never changes."""
        if id(array) not in self._resident:
            self._resident[id(array)] = array, self._upload(array)
        return self._resident[id(array)][1]

    def _fit_worlds(self) -> None:
        """Give every world of the batch room for the largest level, so that no step needs more."""
        worlds = self._batch.worlds
        if worlds.rooms["trail_begin"][-1] != NO_TRAIL:
            fixed = make_worlds(self.num_envs, self._batch.level_set, self.config.max_frames)
            for index in np.flatnonzero(self._batch.episodes["number"]).tolist():  # where one has begun
                copy_world(worlds, index, fixed, index)
            self._batch._replace_arrays(worlds=fixed)

    def _pull(self, *names: str) -> None:
        """Read the state of the environments, or the parts of some names, into the batch of the processor."""
        self.synchronize()
        self._pulled = names or tuple(self._state)
        for name, array in self._of_state().items():
            if name in self._pulled and array.size:
                array.reshape(-1).view(np.uint8)[:] = self._state[name].tensor.cpu().numpy()

    def _push(self) -> None:
        """Write what was read back to the device; with all of the state also what the batch plays now."""
        whole = len(self._pulled) == len(self._state)
        if whole:
            self._fit_worlds()
        for name, array in self._of_state().items():
            if whole or name in self._pulled:
                self._renewed(self._state, name, array)
        if whole:
            self._make_calls()

    def _renewed(self, kept: dict[str, Any], name: str, array: np.ndarray) -> Any:
        """Write an array over the one of its name, in place where it has the shape: CUDA graphs know its address."""
        if name not in kept or kept[name].shape != array.shape:
            kept[name] = self._upload(array)
        elif array.size:
            kept[name].tensor.copy_(self._torch.from_numpy(array.reshape(-1).view(np.uint8).copy()))
        return kept[name]

    def _of_state(self) -> dict[str, np.ndarray]:
        """Return the arrays of the batch that programs write."""
        batch = self._batch
        worlds = {f"worlds {name}": array for name, array in batch.worlds._asdict().items()}
        return {**worlds, "episodes": batch.episodes, "results": batch.results}

    def _make_calls(self) -> None:
        """Prepare the programs for the arrays as they are now."""
        host = self._batch._arrays
        worlds = WorldArrays(*(self._state[f"worlds {name}"] for name in WorldArrays._fields))
        never = {name: mapped(getattr(host, name), self._keep) for name in ("levels", "paths", "pictures", "settings")}
        arrays = host._replace(
            **never,
            thresholds=self._renewed(self._plan, "thresholds", host.thresholds),
            starts=host.starts._replace(
                **{name: self._renewed(self._plan, name, array) for name, array in host.starts._asdict().items()}
            ),
            worlds=worlds,
            episodes=self._state["episodes"],
            results=self._state["results"],
            actions=self._of_tensor(self._actions, np.int64, (self.num_envs,)),
            events=self._uploaded(host.events),
            canvas=self._uploaded(
                host.canvas._replace(**{name: array[:0] for name, array in host.canvas._asdict().items()})
            ),
        )
        used = {id(array) for array in leaves(tuple(getattr(host, name) for name in never)) if array is not None}
        self._resident = {key: kept for key, kept in self._resident.items() if key in used}
        self._arrays = arrays
        self._seen, out = self._viewed(self._rows)
        _, last = self._viewed(self._final_rows)
        ended = self._scratch["ended"] if "ended" in self._scratch else self._uploaded(self._batch._no_final.worlds)
        final = FinalArrays(last, self._zeros((1,), np.int64), self._zeros((0,), np.int32), ended)
        program = self._device.program
        self._step = program("step", (arrays, out, final, self._refused))
        self._reset = program("reset", (arrays, self._mask, out))
        self._after: list[Callable[..., None]] = []
        self._after_final: list[Callable[..., None]] = []
        rules = arrays.settings
        if "masks" in self._scratch:
            row = self._seen["action_mask"]
            inputs = arrays.levels, worlds, rules, arrays.episodes, self._scratch["masks"], row
            self._after.append(program("masks", inputs))
        if "outcomes" in self._scratch:
            scratch = self._scratch
            row = self._seen["action_outcomes"]
            work = scratch["outcomes"], rules, scratch["progress"], scratch["values"]
            of = arrays.levels, arrays.paths
            self._after.append(program("outcomes", (*of, worlds, *work, row, scratch["all"], arrays.results)))
            if self._keeps_final:
                last_row = self._of_words("action_outcomes", self._final_rows)
                of_last = *of, scratch["ended"], *work, last_row, scratch["rows"], arrays.results
                self._after_final.append(program("outcomes", of_last))
        self._make_columns()

    def _viewed(self, rows: Mapping[str, Any]) -> tuple[dict[str, DeviceArray], Any]:
        """Return arrays by name, and the ``ObservationArrays`` of tensors by name."""
        specs = [spec for spec in self._batch.specs if spec.name in rows]
        view = kernel_view(make_buffers(specs, self.num_envs), self._batch._unobserved)
        made: dict[str, DeviceArray] = {}

        def placed(name: str, array: np.ndarray | None) -> Any:
            if array is None:
                return None
            if name not in rows:
                return self._keep(array)
            made[name] = self._of_tensor(rows[name], array.dtype, array.shape)
            return made[name]

        extras = view.extras
        if extras is not None:
            extras = extras._make(placed(name, array) for name, array in extras._asdict().items())
        common = {name: placed(name, array) for name, array in view._asdict().items() if name != "extras"}
        for name in ("action_mask", "action_outcomes"):
            if name in rows:
                made[name] = self._of_words(name, rows)
        return made, view._replace(**common, extras=extras)

    def _of_words(self, name: str, rows: Mapping[str, Any]) -> DeviceArray:
        spec = next(spec for spec in self._batch.specs if spec.name == name)
        empty = np.zeros((self.num_envs, *spec.shape), spec.dtype)
        view = words(empty) if spec.dtype.kind == "f" else empty
        return self._of_tensor(rows[name], view.dtype, view.shape)

    def _of_tensor(self, tensor: Any, dtype: Any, shape: tuple[int, ...]) -> Any:
        return DeviceArray(tensor.view(self._torch.uint8).reshape(-1), np.dtype(dtype), shape)

    def _make_columns(self) -> None:
        """Make the views of the results that calls return."""
        results = self._state["results"].tensor.view(self.num_envs, RESULT.itemsize)
        self._columns: dict[str, Any] = {}
        for spec in RESULT_SPECS:
            kind, offset, *_ = RESULT.fields[spec.result]  # type: ignore[index]
            self._columns[spec.name] = results.view(self._kind(kind))[:, offset // kind.itemsize]
        self._info: dict[str, Any] = {}
        for name in COLUMNS:
            self._info[name], self._info[f"_{name}"] = self._columns[name], self._all
        self._info_of_steps = dict(self._info)
        if self._keeps_final:
            final: dict[str, Any] = {}
            for name in COLUMNS:
                final[name], final[f"_{name}"] = self._columns[name], self._ended
            last = alone(self._final_rows, self._only)
            self._info_of_steps |= {"final_obs": last, "final_info": final}
            self._info_of_steps |= {"_final_obs": self._ended, "_final_info": self._ended}

    def step(self, actions: Any, *, out: Mapping[str, Any] | None = None) -> Step:
        """Advance every environment by one step; see the class and :meth:`NPlusPlusVectorEnv.step`.

        Args:
            actions: (n,) integers 0..5, or (n, 2) for ``multi_discrete``: a tensor of the device, or anything that is
                copied there.
            out: contiguous tensors of the device to write, by name: all observations, and any of the results.

        Returns:
            Observations, rewards, terminations, truncations, info: tensors.
        """
        self._lifecycle.check("step", AFTER_RESET)
        rows = {self._seen[name]: tensor for name, tensor in self._rows_of(out).items()}
        chosen = self._taken = self._chosen(actions)
        with self._lifecycle.changing:
            self._lifecycle.phase = BROKEN
            replaced: dict[Any, Any] = {**rows, self._arrays.actions: chosen}
            self._step(self.num_envs, replaced)
            self._observe_after(rows)
            for run in self._after_final:
                run(self.num_envs, {})
            if self._keeps_final:
                columns = self._columns
                self._torch.logical_or(columns["terminations"], columns["truncations"], out=self._ended)
            self._lifecycle.phase = RUNNING
        columns = self._written(out)
        seen = alone(self._rows if out is None else {name: out[name] for name in self._rows}, self._only)
        return seen, columns["rewards"], columns["terminations"], columns["truncations"], self._info_of_steps

    def _chosen(self, actions: Any) -> Any:
        """Return the actions of a step as a tensor, (n,) int64, of the device."""
        torch, kind, count = self._torch, self.config.action_space, self.num_envs
        if not isinstance(actions, torch.Tensor) or actions.device != self._actions.device:
            numbers = np.zeros(count, np.int64)
            check_actions(actions, kind, numbers)
            self._actions.copy_(torch.from_numpy(numbers))
            return self._actions
        shape = (count,) if kind == "discrete" else (count, 2)
        if actions.dtype.is_floating_point or actions.dtype in (torch.bool, torch.complex64, torch.complex128):
            raise ActionError(f"action: expected an integer dtype, got {actions.dtype}; convert with .long()")
        if actions.shape != shape:
            raise ActionError(f"action: expected shape {shape} for the {kind} space, got shape {tuple(actions.shape)}")
        if kind != "discrete":
            direction, jump = actions[:, 0], actions[:, 1]
            wrong = (direction < 0) | (direction >= NUM_DIRECTIONS)
            return torch.where(wrong, -1, jump.long() * NUM_DIRECTIONS + direction)
        return actions.long().contiguous()

    def _rows_of(self, out: Mapping[str, Any] | None) -> dict[str, Any]:
        """Return the tensors, by name, that observations are written to instead of those of the environment."""
        if out is None:
            return {}
        specs = {spec.name: spec for spec in self._batch.specs}
        columns = {spec.name: spec for spec in RESULT_SPECS}
        if not isinstance(out, Mapping) or not set(specs) <= set(out) <= {*specs, *columns}:
            got = list(out) if isinstance(out, Mapping) else type(out).__name__
            raise errors.BufferError(f"out: expected the keys {list(specs)} and any of {list(columns)}, got {got}")
        for name, tensor in out.items():
            spec = specs.get(name) or columns[name]
            kinds = [self._kind(kind) for kind in (spec.dtypes if isinstance(spec, ColumnSpec) else (spec.dtype,))]
            shape = (self.num_envs, *spec.shape)
            if (
                not isinstance(tensor, self._torch.Tensor)
                or tensor.dtype not in kinds
                or tensor.shape != shape
                or tensor.device != self._actions.device
                or not tensor.is_contiguous()
            ):
                has_shape = hasattr(tensor, "shape")
                found = f"{tensor.dtype} {tuple(tensor.shape)}" if has_shape else type(tensor).__name__
                expected = f"a contiguous tensor, {kinds[0]} {shape} on {self._actions.device}"
                raise errors.BufferError(f"out[{name!r}]: expected {expected}, got {found}")
        return {name: out[name] for name in specs}

    def _written(self, out: Mapping[str, Any] | None) -> dict[str, Any]:
        """Return the columns of the results, copied to those of ``out``."""
        if out is None or len(out) == len(self._rows):
            return self._columns
        given = {name: out[name] for name in self._columns if name in out}
        for name, tensor in given.items():
            tensor.copy_(self._columns[name])
        return {**self._columns, **given}

    def _observe_after(self, rows: Mapping[DeviceArray, Any]) -> None:
        for run in self._after:
            run(self.num_envs, rows)

    def synchronize(self) -> None:
        """Wait for the device, and check the actions of the steps so far.

        Raises:
            ActionError: if one was not 0..5.
        """
        if int(self._refused.tensor.view(self._torch.int64).item()):
            self._refused.tensor.zero_()
            raise ActionError("action: expected 0 to 5, got another number on the device; those were not stepped")

    def reset(
        self, *, seed: Any = None, options: dict[str, Any] | None = None, out: Mapping[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin new episodes; see :meth:`NPlusPlusVectorEnv.reset`."""
        if self._lifecycle.phase is not Phase.CLOSED:
            self._pull(*(() if "state" in (mapping(options) or {}) else ("episodes",)))
        return super().reset(seed=seed, options=options, out=out)

    def get_state(self, index: int) -> bytes:
        """Return a snapshot of one environment; see :meth:`NPlusPlusVectorEnv.get_state`."""
        self._lifecycle.check("get_state", AFTER_RESET)
        self._pull()
        return super().get_state(index)

    def set_state(self, index: int, state: bytes) -> tuple[Any, dict[str, Any]]:
        """Restore one environment from a snapshot; see :meth:`NPlusPlusVectorEnv.set_state`."""
        self._lifecycle.check("set_state", AFTER_RESET)
        return self._on_the_batch(lambda: super(NPlusPlusCudaVectorEnv, self).set_state(index, state))

    def reseed(self, seed: int | Sequence[int | None]) -> None:
        """Draw what follows from another seed; see :meth:`NPlusPlusVectorEnv.reseed`."""
        self._lifecycle.check("reseed", AFTER_RESET)
        self._on_the_batch(lambda: super(NPlusPlusCudaVectorEnv, self).reseed(seed))

    def get_states(self) -> list[bytes]:
        """Return the snapshot of each environment, with one copy of the state to the host."""
        self._lifecycle.check("get_states", AFTER_RESET)
        self._pull()
        return [self._batch.get_state(index) for index in range(self.num_envs)]

    def set_states(self, states: Sequence[bytes]) -> None:
        """Restore every environment from a snapshot, with one copy of the state to the host and one back.

        Raises:
            ConfigError: if there are not n snapshots.
            SnapshotError: as :meth:`set_state`; no environment is changed in either case.
        """
        self._lifecycle.check("set_states", AFTER_RESET)
        if len(states) != self.num_envs:
            raise ConfigError(f"states: expected {self.num_envs} snapshots, one per environment, got {len(states)}")

        def restore() -> None:
            for index, state in enumerate(states):
                self._batch.set_state(index, state)

        self._on_the_batch(restore)

    def copy_world(self, source: int, target: int) -> tuple[Any, dict[str, Any]]:
        """Copy the whole state of one environment to another; see :meth:`NPlusPlusVectorEnv.copy_world`."""
        self._lifecycle.check("copy_world", AFTER_RESET)
        return self._on_the_batch(lambda: super(NPlusPlusCudaVectorEnv, self).copy_world(source, target))

    def gather(self, indices: Any, *, out: Mapping[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Copy environment ``indices[i]`` to environment i, for all i; see :meth:`NPlusPlusVectorEnv.gather`."""
        self._lifecycle.check("gather", AFTER_RESET)
        self._pull()
        return super().gather(indices.cpu().numpy() if hasattr(indices, "cpu") else indices, out=out)

    def exchange_levels(self, levels: Any) -> None:
        """Play other levels in future episodes; see :meth:`NPlusPlusVectorEnv.exchange_levels`."""
        self._lifecycle.check("exchange_levels", NOT_CLOSED)
        self._pull()
        super().exchange_levels(levels)
        self._allocate()

    def set_level_weights(self, weights: Any = None) -> None:
        """Draw levels with other probabilities; see :meth:`NPlusPlusVectorEnv.set_level_weights`."""
        super().set_level_weights(weights)
        self._renewed(self._plan, "thresholds", self._batch._arrays.thresholds)

    def assign_levels(self, levels: Any = None) -> None:
        """Assign levels to environments; see :meth:`NPlusPlusVectorEnv.assign_levels`."""
        self._on_the_batch(lambda: super(NPlusPlusCudaVectorEnv, self).assign_levels(levels))

    def set_starts(self, states: Any = (), share: Any = 1.0) -> None:
        """Begin a share of the episodes in snapshots; see :meth:`NPlusPlusVectorEnv.set_starts`."""
        self._on_the_batch(lambda: super(NPlusPlusCudaVectorEnv, self).set_starts(states, share))

    def set_start_shares(self, share: Any) -> None:
        """Change the shares of the start states; see :meth:`NPlusPlusVectorEnv.set_start_shares`."""
        super().set_start_shares(share)
        self._renewed(self._plan, "starts", self._batch._arrays.starts.starts)

    def kernel_steps(self, out: Any, final: Any) -> None:
        """Return None: a kernel of the processor cannot step these environments."""

    def pictures(self, indices: Sequence[int]) -> tuple[np.ndarray, ...]:
        """Return the pictures of some environments; see :meth:`NPlusPlusVectorEnv.pictures`."""
        self._lifecycle.check("pictures", AFTER_RESET)
        self._pull()
        return super().pictures(indices)

    @property
    def taken_actions(self) -> Any:
        """Actions of the last step as a tensor; see :attr:`NPlusPlusVectorEnv.taken_actions`.

        Without ``action_repeat_probability`` it shares memory with those that were given.
        """
        if self.config.action_repeat_probability > 0.0:
            episodes = self._state["episodes"].tensor.view(self.num_envs, EPISODE.itemsize)
            return episodes[:, EPISODE.fields["action"][1]].long()  # type: ignore[index]
        return self._taken

    @property
    def worlds(self) -> WorldArrays:
        """A copy of the worlds, on the processor."""
        self._pull()
        return self._batch.worlds

    def memory(self) -> MemoryNode:
        """Return the tree of all bytes that this environment owns, those of the device first."""
        of_device = leaves((self._arrays, tuple(self._scratch.values())))
        made = {id(array): array.tensor for array in of_device if array is not None}
        rows = [*self._rows.values(), *self._final_rows.values()]
        bytes_there = sum(tensor.numel() for tensor in made.values()) + sum(row.nbytes for row in rows)
        there = MemoryNode(f"on {self._device.place}", own_bytes=bytes_there)
        return MemoryNode("vector environment", children=(there, *super().memory().children))

    def _on_the_batch(self, call: Callable[[], Any]) -> Any:
        self._pull()
        result = call()
        self._push()
        return result

    def _begin(self, mask: np.ndarray, outputs: Any) -> None:
        """Begin new episodes where ``mask``, (n,) bool, is set, and observe all environments."""
        self._push()
        self._mask.tensor.copy_(self._torch.from_numpy(mask.view(np.uint8).copy()))
        _, rows = outputs
        rows = {self._seen[name]: tensor for name, tensor in rows.items()}
        self._reset(self.num_envs, rows)
        self._observe_after(rows)

    def _returned(self, outputs: Any, mask: np.ndarray | None = None) -> tuple[Any, dict[str, Any]]:
        out, _ = outputs
        self._written(out)
        return alone(self._rows if out is None else {name: out[name] for name in self._rows}, self._only), self._info

    def _observed(self, index: int) -> tuple[Any, dict[str, Any]]:
        row, info = super()._observed(index)
        place = self._device.place
        if isinstance(row, Mapping):
            return {name: self._torch.from_numpy(array).to(place) for name, array in row.items()}, info
        return self._torch.from_numpy(row).to(place), info


def _check_possible(config: EnvironmentConfig, **options: Any) -> None:
    """Reject what needs the processor in every step."""
    for name, value in options.items():
        if value is not None:
            raise ConfigError(f"{name}: expected None with device='cuda', got {shortened(value)}")
    refused = [name for name in NOT_ON_DEVICES if name in config.observations]
    if refused:
        raise ConfigError(
            f"observations: expected none of {', '.join(NOT_ON_DEVICES)} with device='cuda', got {refused}"
        )
    depth = config.observation.frame_stack
    if depth > 1:
        raise ConfigError(f"frame_stack: expected 1 with device='cuda', got {depth}; stack rows of out")


class _Outputs:
    """What ``take`` of ``env.arrays.outputs.OutputMemory`` is here: tensors of the environment or of the caller."""

    def __init__(self, rows_of: Callable[[Any], dict[str, Any]]):
        self._rows_of = rows_of

    def take(self, out: Any) -> tuple[Any, dict[str, Any]]:
        """Return ``out``, checked, and its observations by name."""
        return out, self._rows_of(out)

    def memory(self) -> MemoryNode:
        """Return an empty tree: the tensors are counted with the device."""
        return MemoryNode("outputs")


def leaves(value: Any) -> Iterator[Any]:
    """Iterate over what nested tuples contain: arrays, and None where one is left out."""
    if isinstance(value, tuple):
        for part in value:
            yield from leaves(part)
    else:
        yield value


def mapped(value: Any, function: Callable[[Any], Any]) -> Any:
    """Return nested tuples with a function applied to their arrays."""
    if isinstance(value, tuple):
        parts = [mapped(part, function) for part in value]
        return value._make(parts) if hasattr(value, "_make") else tuple(parts)
    return None if value is None else function(value)


class CudaDevice:
    """A GPU, by PyTorch's context and stream."""

    def __init__(self, name: str):
        torch = optional_module("torch", "train")
        if not torch.cuda.is_available():
            built = f"CUDA {torch.version.cuda}, but no GPU or driver is there" if torch.version.cuda else "no CUDA"
            raise ConfigError(
                f"device: expected a GPU for {name!r}, got none (torch {torch.__version__}: {built}); use device='cpu'"
            )
        try:
            self.place = torch.empty(0, device=name).device
        except (RuntimeError, AssertionError) as error:
            raise ConfigError(
                f"device: expected one of {torch.cuda.device_count()} GPUs ('cuda', 'cuda:0' ...), got {name!r}"
            ) from error
        self._torch = torch
        self._entries: dict[tuple[Any, ...], Entry] = {}

    def free_bytes(self) -> int | None:
        """Return the memory that is left."""
        return int(self._torch.cuda.mem_get_info(self.place)[0])

    def program(self, name: str, arguments: tuple[Any, ...]) -> Callable[[int, Mapping[DeviceArray, Any]], None]:
        """Return a program with arguments; it is compiled and loaded at its first use."""
        entry = self._entry(name, arguments)
        block, places = block_of(arguments)

        def run(count: int, replaced: Mapping[DeviceArray, Any]) -> None:
            slots = block.copy()
            for array, tensor in replaced.items():
                if array in places:
                    slots[places[array]] = tensor.data_ptr()
            stream = self._torch.cuda.current_stream(self.place).cuda_stream
            with self._torch.cuda.device(self.place):
                entry.launch(slots, count, threads_each(count), stream)

        return run

    def _entry(self, name: str, arguments: tuple[Any, ...]) -> Entry:
        kinds = tuple(array and (array.dtype, len(array.shape), array.is_written) for array in leaves(arguments))
        if (name, kinds) not in self._entries:
            ptx = kept_ptx(name, PROGRAMS[name], mapped(arguments, sample))
            with self._torch.cuda.device(self.place):
                self._entries[name, kinds] = Entry(ptx, name)
        return self._entries[name, kinds]


class Recorder:
    """A device that runs nothing, and keeps the arguments of each program: to compile without a GPU."""

    place = "meta"

    def __init__(self) -> None:
        self.arguments: dict[str, tuple[Any, ...]] = {}

    def free_bytes(self) -> None:
        """Return None: nothing is known."""

    def program(self, name: str, arguments: tuple[Any, ...]) -> Any:
        """Keep the arguments of a program."""
        self.arguments[name] = arguments


def arguments_of(observations: Sequence[str]) -> dict[str, tuple[Any, ...]]:
    """Return the arguments of the programs of a configuration, by name."""
    device = Recorder()
    config = EnvironmentConfig(levels="first-steps", observations=observations)  # type: ignore[arg-type]
    NPlusPlusCudaVectorEnv(config, 2, device=device, autoreset_mode="SameStep").close()
    return device.arguments


def compile_programs() -> None:
    """Compile the programs of training with ``game_state``, without a GPU, and keep their code."""
    for name, arguments in arguments_of(("game_state",)).items():
        kept_ptx(name, PROGRAMS[name], mapped(arguments, sample))


def sample(array: DeviceArray) -> np.ndarray:
    """Return an array of the type that a program sees."""
    made = np.zeros((1,) * len(array.shape), array.dtype)
    made.flags.writeable = array.is_written
    return made


def threads_each(count: int) -> int:
    """Return the threads of a group: few worlds a warp where there are few, as their branches then wait less."""
    return 1 if count <= 1024 else 8 if count <= 8192 else 64


_devices: dict[str, CudaDevice] = {}


def device_of(name: Any) -> Device:
    """Return the device of a name, made at its first use."""
    if not isinstance(name, str) or not re.fullmatch(r"cuda(:\d+)?", name):
        raise ConfigError(f"device: expected 'cpu', 'cuda' or 'cuda:1', got {shortened(name)}")
    if name not in _devices:
        _devices[name] = CudaDevice(name)
    return _devices[name]
