"""Calls of environments in any order, against a model of the life cycle: what each may do in each phase."""

import random
from typing import Any

import hypothesis
import numpy as np
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from nclone_env import NPlusPlusEnv, NPlusPlusVectorEnv, errors
from tests.env.bases import QUICK_DEATH, QUICK_WIN, WALK

from ..env import peek
from .playing import check_finite
from .target import Target

_EXAMPLES, _CALLS = 4, 40
_LEVELS = (QUICK_WIN, QUICK_DEATH, WALK)
_WRONG_ACTIONS: tuple[Any, ...] = (
    None, "0", 6, -1, 2**70, 1.5, True, [], [[0]], [0.0] * 3, [9] * 3, [0] * 9, [[0], [1, 2]], {}, b"", object(),
)  # fmt: skip
_WRONG_INDICES: tuple[Any, ...] = (-1, 99, 1.5, None, "0", True, [0], 2**70)
_WRONG_OPTIONS: tuple[Any, ...] = (
    [], 3, {"x": 1}, {1: 2, "x": 3}, {"level": 99}, {"level": "nope"}, {"level": 1.5}, {"state": None}, {"state": b"x"},
    {"level": 0, "state": b"x"}, {"level": [[0]]}, {"level": {}},
)  # fmt: skip
_WRONG_SEEDS: tuple[Any, ...] = (-1, 1.5, "0", True, float("nan"), {}, object())
_WRONG_OUT: tuple[Any, ...] = ({}, [], 3, {"game_state": 1}, {"game_state": np.zeros(3)}, {"x": np.zeros(3)})
_WRONG_LEVELS: tuple[Any, ...] = ((), "nope", 3, None, b"", b"x" * 2000, [None], {"a": 1})
_REFUSED = (errors.NcloneError,)


class _Calls(RuleBasedStateMachine):
    """A model of the life cycle: which phase the environment is in, and which error a call in it raises."""

    env: Any
    phase = "new"
    state: bytes | None = None

    def expected(self, needs_reset: bool = True) -> type[Exception] | None:
        """Return the class of the error that any call raises now."""
        if self.phase == "closed":
            return errors.ClosedError
        return errors.ResetNeededError if needs_reset and self.phase == "new" else None

    def call(self, expected: Any, function: Any, *arguments: Any, **named: Any) -> Any:
        """Call a function; return what it returns, None if it raises what is expected."""
        result, error = None, None
        try:
            result = function(*arguments, **named)
        except _REFUSED as raised:
            error = raised
        assert isinstance(error, expected or type(None)), f"expected {expected}, got {error!r}"
        assert error is None or 0 < len(str(error)) < 1000
        for name, array in _observations(result):
            check_finite(name, array)
        return result

    def teardown(self) -> None:
        self.env.close()

    @rule()
    def memory(self):
        if self.phase != "closed":
            assert self.env.memory().total_bytes > 0

    @rule(options=st.sampled_from((None, {}, {"level": 0})), seed=st.one_of(st.none(), st.integers(0, 2**70)))
    def reset(self, options, seed):
        if self.call(self.expected(needs_reset=False), self.env.reset, seed=seed, options=options):
            self.phase = "running"

    @rule(options=st.sampled_from(_WRONG_OPTIONS))
    def reset_with_wrong_options(self, options):
        self.call(self.expected(needs_reset=False) or _REFUSED, self.env.reset, options=options)

    @rule(seed=st.sampled_from(_WRONG_SEEDS))
    def reset_with_wrong_seed(self, seed):
        self.call(self.expected(needs_reset=False) or errors.ConfigError, self.env.reset, seed=seed)

    @rule()
    def render(self):
        self.call(self.expected(), self.env.render)

    @rule(often=st.integers(0, 9))
    def close(self, often):
        if often == 0:
            self.env.close()
            self.phase = "closed"


def _observations(result: Any) -> list[tuple[str, np.ndarray]]:
    first = result[0] if isinstance(result, tuple) and result else None
    return list(first.items()) if isinstance(first, dict) else []


class SingleCalls(_Calls):
    """Calls of a single environment."""

    @initialize(mode=st.sampled_from((None, "rgb_array")), stack=st.sampled_from((1, 3)))
    def make(self, mode, stack):
        fields = {"levels": _LEVELS, "observations": ("game_state", "locals"), "max_frames": 60, "render_mode": mode}
        self.env = NPlusPlusEnv(observation={"frame_stack": stack}, **fields)

    @rule(action=st.integers(0, 5), times=st.sampled_from((1, 1, 9)))
    def step(self, action, times):
        for _ in range(times):
            over = errors.ResetNeededError if self.phase == "over" else None
            result = self.call(self.expected() or over, self.env.step, action)
            if result and (result[2] or result[3]):
                self.phase = "over"

    @rule(action=st.sampled_from(_WRONG_ACTIONS))
    def step_with_wrong_action(self, action):
        over = errors.ResetNeededError if self.phase == "over" else errors.ActionError
        self.call(self.expected() or over, self.env.step, action)

    @rule()
    def get_state(self):
        self.state = self.call(self.expected(), self.env.get_state) or self.state

    @rule(place=st.one_of(st.none(), st.integers(0, 10**4)))
    def set_state(self, place):
        state = self.state
        if state is not None and place is not None:
            place %= len(state)
            state = state[:place] + bytes([state[place] ^ 1]) + state[place + 1 :]
        wrong = errors.SnapshotError if state is None or place is not None else None
        if self.call(self.expected(needs_reset=False) or wrong, self.env.set_state, state):
            self.phase = "over" if peek.step_arrays(self.env).episodes[0]["over"] else "running"

    @rule()
    def clone(self):
        other = self.call(self.expected(needs_reset=False), self.env.clone)
        if other:
            self.env.close()
            self.env = other


class VectorCalls(_Calls):
    """Calls of a vector environment."""

    @initialize(
        count=st.integers(1, 3),
        mode=st.sampled_from(("NextStep", "SameStep", "Disabled")),
        stack=st.sampled_from((1, 1, 3)),
        picture=st.sampled_from((None, "rgb_array")),
    )
    def make(self, count, mode, stack, picture):
        self.env = NPlusPlusVectorEnv(
            None,
            count,
            autoreset_mode=mode,
            num_threads=2,
            levels=_LEVELS,
            observations=("game_state", "action_mask"),
            observation={"frame_stack": stack},
            max_frames=60,
            render_mode=picture,
        )

    def actions(self) -> list[int]:
        return [index % 6 for index in range(self.env.num_envs)]

    @rule(times=st.sampled_from((1, 1, 20)))
    def step(self, times):
        for _ in range(times):
            self.call(self.expected(), self.env.step, self.actions())

    @rule(actions=st.sampled_from(_WRONG_ACTIONS))
    def step_with_wrong_actions(self, actions):
        self.call(self.expected() or errors.ActionError, self.env.step, actions)

    @rule(out=st.sampled_from(_WRONG_OUT))
    def step_with_wrong_out(self, out):
        self.call(self.expected() or errors.BufferError, self.env.step, self.actions(), out=out)

    @rule()
    def step_into_own_arrays(self):
        space = self.env.observation_space
        out = {name: np.zeros(part.shape, part.dtype) for name, part in space.items()}
        self.call(self.expected(), self.env.step, self.actions(), out=out)

    @rule()
    def get_state(self):
        self.state = self.call(self.expected(), self.env.get_state, 0) or self.state

    @rule()
    def set_state(self):
        wrong = errors.SnapshotError if self.state is None else None
        self.call(self.expected() or wrong, self.env.set_state, self.env.num_envs - 1, self.state)

    @rule(index=st.sampled_from(_WRONG_INDICES))
    def use_wrong_index(self, index):
        for function in (self.env.get_state, lambda index: self.env.copy_world(0, index)):
            self.call(self.expected() or errors.ConfigError, function, index)
        self.call(self.expected() or errors.ConfigError, self.env.gather, [index] * self.env.num_envs)

    @rule()
    def gather(self):
        self.call(self.expected(), self.env.gather, [0] * self.env.num_envs)

    @rule(levels=st.sampled_from((_LEVELS, _LEVELS[::-1], "first-steps/01-walk")))
    def exchange_levels(self, levels):
        wrong = self.expected(needs_reset=False)
        self.call(wrong, self.env.exchange_levels, levels)
        if not wrong:
            self.state = None

    @rule(levels=st.sampled_from(_WRONG_LEVELS))
    def exchange_wrong_levels(self, levels):
        self.call(self.expected(needs_reset=False) or _REFUSED, self.env.exchange_levels, levels)

    @rule(weights=st.sampled_from(([], [-1.0], "x", {"nope": 1}, [float("nan")] * 3, [0] * 3, {"a": "b"}, 3)))
    def set_wrong_weights(self, weights):
        self.call(self.expected(needs_reset=False) or _REFUSED, self.env.set_level_weights, weights)

    @rule(levels=st.sampled_from(([99], "x", 3, [None] * 9, {"a": 1}, [[0]])))
    def assign_wrong_levels(self, levels):
        self.call(self.expected(needs_reset=False) or _REFUSED, self.env.assign_levels, levels)

    @rule(states=st.sampled_from(([b""], [None], b"xyz", 3, "abc")))
    def set_wrong_starts(self, states):
        self.call(self.expected(needs_reset=False) or _REFUSED, self.env.set_starts, states)

    @rule(share=st.sampled_from(([1.0], "x", -1.0, 2.0, float("nan"), None)))
    def set_wrong_shares(self, share):
        self.call(self.expected(needs_reset=False) or _REFUSED, self.env.set_start_shares, share)


def run_calls(number: int, kind: type[_Calls]) -> None:
    """Run a few series of calls that follow from a number."""
    options = settings(
        max_examples=_EXAMPLES,
        stateful_step_count=_CALLS,
        database=None,
        deadline=None,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
        report_multiple_bugs=False,
    )
    run_state_machine_as_test(hypothesis.seed(number)(kind), settings=options)


def _number(rng: random.Random) -> int:
    return rng.randrange(2**32)


TARGETS = (
    Target("single-calls", lambda: [0], _number, lambda number: run_calls(number, SingleCalls), (), source=""),
    Target("vector-calls", lambda: [0], _number, lambda number: run_calls(number, VectorCalls), (), source=""),
)
