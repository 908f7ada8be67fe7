"""Steps that do not come to their end: Ctrl-C, errors, two threads at once, forks in the middle."""

import gc
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from nclone_env import NPlusPlusEnv, NPlusPlusVectorEnv
from nclone_env.env import Workers
from nclone_env.errors import ResetNeededError, StepOrderError
from nclone_env.game import DEATH_BALL, EXIT, EXIT_SWITCH, NINJA
from nclone_env.level.level import RawLevel
from nclone_env.sim.trajectory import simulate

FIELDS = {"levels": ("jumps",), "observations": ("game_state",)}


LONG = {"frame_skip": 60}  # steps of 2,048 slow environments then take five seconds of processor time and more


def slow_level() -> RawLevel:
    """Return a slow level, with about 25,000 frames/s."""
    balls = [(DEATH_BALL, 20 + i % 16 * 8, 20 + i // 16 * 4, 0, 0) for i in range(256)]
    return RawLevel(
        np.zeros((23, 42)), [(NINJA, 10, 94, 0, 0), (EXIT, 150, 8, 0, 0), (EXIT_SWITCH, 160, 8, 0, 0), *balls]
    )


def interrupt_after(seconds: float) -> threading.Timer:
    """Send Ctrl-C to this process."""
    timer = threading.Timer(seconds, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    return timer


@pytest.mark.parametrize("num_threads", [1, 2])
def test_ctrl_c_ends_a_step_of_slow_environments(num_threads):
    """Without it all environments are stepped."""
    envs = NPlusPlusVectorEnv(levels=(slow_level(),), num_envs=2048, num_threads=num_threads, **LONG)
    envs.reset(seed=0)
    frames = envs.worlds.ninjas["frame"]

    def interrupt():
        while not frames.any():
            time.sleep(0.005)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        envs.step(np.zeros(2048, np.int64))
    thread.join()
    assert 0 < np.count_nonzero(frames) < 2048
    with pytest.raises(ResetNeededError, match=r"step\(\) was called after a call that an error or Ctrl-C ended"):
        envs.step(np.zeros(2048, np.int64))
    mask = np.zeros(2048, np.bool_)
    envs.reset(options={"reset_mask": mask})  # all are reset nevertheless
    assert not envs.worlds.ninjas["frame"].any()
    envs.close()


def test_ctrl_c_while_waiting_for_other_threads_leaves_none_at_work():
    """The rest of the range is left out, and the next range is processed in full."""
    workers, caller = Workers(1000, num_threads=2, min_chunk=10), threading.get_ident()
    begun, running, interrupted, seen = threading.Event(), set(), [], []

    def slow(worker, first, last):
        if threading.get_ident() == caller:
            assert begun.wait(60)
            return
        running.add(first)
        begun.set()
        if not interrupted:
            interrupted.append(first)
            os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.05)
        running.remove(first)

    with pytest.raises(KeyboardInterrupt):
        workers.run(slow, 0, 1000)
    assert not running
    workers.run(lambda worker, first, last: seen.extend(range(first, last)), 0, 1000)
    assert sorted(seen) == list(range(1000))
    workers.close()


def test_ctrl_c_ends_a_simulation():
    simulate(slow_level(), bytes(1))  # compiles
    began = time.process_time()

    def simulate_slowly():
        interrupt_after(0.3)  # on a busy machine before it has begun
        simulate(slow_level(), bytes(3_000_000))

    with pytest.raises(KeyboardInterrupt):
        simulate_slowly()
    assert time.process_time() - began < 30  # two minutes without


def failing(event):
    """Raise an error in every step."""
    if event["frames"] > 0:
        raise ValueError("no reward")
    return 0.0


@pytest.mark.parametrize("num_threads", [1, 2])
def test_an_error_of_the_reward_function_ends_the_step(num_threads):
    envs = NPlusPlusVectorEnv(None, 4, reward_function=failing, num_threads=num_threads, **FIELDS)
    envs.reset(seed=0)
    with pytest.raises(ValueError, match="no reward"):
        envs.step(np.zeros(4, np.int64))
    with pytest.raises(ResetNeededError):
        envs.step(np.zeros(4, np.int64))
    envs.reset()
    envs.close()
    env = NPlusPlusEnv(None, reward_function=failing, **FIELDS)
    env.reset(seed=0)
    with pytest.raises(ValueError, match="no reward"):
        env.step(0)
    with pytest.raises(ResetNeededError):
        env.get_state()
    env.reset()
    env.close()


def test_a_call_while_another_thread_steps_is_rejected():
    """The step of the other thread takes long and is not disturbed."""
    envs = NPlusPlusVectorEnv(levels=(slow_level(),), num_envs=256, num_threads=1, **LONG)
    envs.reset(seed=0)
    actions, frames = np.zeros(256, np.int64), []
    thread = threading.Thread(target=lambda: frames.append(envs.step(actions)[4]["frames"].sum()), daemon=True)
    thread.start()
    while not envs.worlds.ninjas["frame"].any():
        assert thread.is_alive()
    calls = {
        "step": lambda: envs.step(actions),
        "reset": lambda: envs.reset(seed=0),
        "set_starts": envs.set_starts,
        "exchange_levels": lambda: envs.exchange_levels("jumps"),
    }
    for name, call in calls.items():
        with pytest.raises(StepOrderError, match=rf"{name}\(\) was called while another thread is inside of a call"):
            call()
    thread.join(60)
    assert frames == [60 * 256]
    envs.close()


def test_two_threads_in_one_environment():
    """However the calls of two threads meet, none hangs, none fails otherwise, and the environment goes on."""
    envs = NPlusPlusVectorEnv(None, 512, num_threads=2, **FIELDS)
    envs.reset(seed=0)
    actions, other = np.zeros(512, np.int64), []

    def call():
        for _ in range(50):
            try:
                envs.step(actions)
            except StepOrderError:
                continue
            except BaseException as error:
                other.append(error)
                raise

    threads = [threading.Thread(target=call, daemon=True) for _ in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
        assert not thread.is_alive()
    assert not other
    envs.step(actions)
    envs.close()


def in_child(call) -> str:
    """Fork; return what the call raised in the child, which is killed after a minute."""
    reading, writing = os.pipe()
    process = os.fork()
    if process == 0:
        signal.alarm(60)
        try:
            outcome = f"returned {call()}"
        except BaseException as error:  # noqa: BLE001 - the parent looks at it
            outcome = f"{type(error).__name__}: {error}"
        os.write(writing, outcome.encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        said = pipe.read().decode()
    assert os.waitpid(process, 0)[1] == 0, "the child hung"
    return said


def test_a_fork_while_another_thread_steps():
    envs, ended = NPlusPlusVectorEnv(None, 512, num_threads=2, **FIELDS), threading.Event()
    envs.reset(seed=0)

    def step():
        while not ended.is_set():
            envs.step(np.zeros(512, np.int64))

    thread = threading.Thread(target=step, daemon=True)
    thread.start()
    said = {in_child(lambda: envs.step(np.ones(512, np.int64))[1].shape)[:30] for _ in range(10)}
    ended.set()
    thread.join(60)
    assert said <= {"returned (512,)", "StepOrderError: step() was cal"}
    envs.close()


ENDINGS = {"": 0, "raise SystemExit(3)": 3, "del envs": 0, "import os; os._exit(3)": 3}
UNDER_WAY = """
import os
import signal
import sys
import threading
import numpy as np
from nclone_env import NPlusPlusVectorEnv
from tests.system.test_interruption import slow_level
level = slow_level()
few = NPlusPlusVectorEnv(levels=(level,), num_envs=2, num_threads=1, frame_skip=60)  # loads the kernels
few.reset(seed=0)
few.step(np.zeros(2, np.int64))
few.close()
for ending in sys.argv[1:]:
    child = os.fork()
    if child == 0:
        break
    _, status, used = os.wait4(child, 0)
    print(os.waitstatus_to_exitcode(status), int(used.ru_utime + used.ru_stime), flush=True)
else:
    raise SystemExit
signal.alarm(60)
envs = NPlusPlusVectorEnv(levels=(level,), num_envs=2048, num_threads=2, frame_skip=60)
envs.reset(seed=0)
threading.Thread(target=envs.step, args=(np.zeros(2048, np.int64),), daemon=True).start()
exec(ending)
"""


def test_processes_end_while_a_thread_steps():
    """The step takes 5 seconds of processor time; the processes are copies of one that has loaded the kernels."""
    command = [sys.executable, "-c", UNDER_WAY, *ENDINGS]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    codes, seconds = zip(*(map(int, line.split()) for line in done.stdout.splitlines()), strict=True)
    assert codes == tuple(ENDINGS.values())
    assert max(seconds) < 3


def test_garbage_collection_ends_the_threads():
    before = threading.enumerate()
    for _ in range(5):
        envs = NPlusPlusVectorEnv(None, 512, num_threads=2, **FIELDS)
        envs.reset(seed=0)
        envs.step(np.zeros(512, np.int64))
        del envs
    gc.collect()
    ended = time.monotonic() + 600
    while set(threading.enumerate()) - set(before) and time.monotonic() < ended:
        time.sleep(0.01)
    assert not set(threading.enumerate()) - set(before)


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_other_ways_to_start_processes_beside_threads(method):
    envs = NPlusPlusVectorEnv(None, 512, num_threads=2, **FIELDS)
    envs.reset(seed=0)
    expected = envs.step(np.zeros(512, np.int64))[1]
    with multiprocessing.get_context(method).Pool(1) as pool:
        rewards = pool.apply(rewards_of_a_step)
    np.testing.assert_array_equal(rewards, expected)
    envs.close()


def rewards_of_a_step():
    envs = NPlusPlusVectorEnv(None, 512, num_threads=2, **FIELDS)
    envs.reset(seed=0)
    rewards = envs.step(np.zeros(512, np.int64))[1]
    envs.close()
    return rewards
