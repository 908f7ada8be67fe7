"""The level library: equal levels are one level set in a process, and one file on a machine."""

import gc
import hashlib
import multiprocessing
import os
import pickle
from pathlib import Path

import pytest
from numba.core import config

from nclone_env import EnvironmentConfig, NPlusPlusEnv, NPlusPlusVectorEnv, _arrays, level_library
from nclone_env.cli.app import main
from nclone_env.env.compiled.step import reset_range, step_range
from nclone_env.level import level_set as level_set_module
from nclone_env.level import load_level, load_levels, pack, shared_level_set
from nclone_env.level.compile import compile_level
from nclone_env.level.level_set import ARRAYS_LAYOUT

from ..env import peek
from ..env.bases import QUICK_DEATH, QUICK_WIN, WALK, Digest, choices, corridor

compiled_only = pytest.mark.skipif(bool(config.DISABLE_JIT), reason="needs compiled kernels")
LEVELS = (WALK, QUICK_WIN, QUICK_DEATH)
SETTINGS = {"levels": LEVELS, "observations": ("game_state", "global_view"), "max_frames": 200}


def read_glyphs():
    """Make this process read the glyphs, which it does once, from the folder of the machine."""
    NPlusPlusEnv(levels="first-steps", observations=SETTINGS["observations"]).close()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder of our own, with the counters at zero."""
    read_glyphs()
    place = tmp_path / "levels"
    monkeypatch.setattr(_arrays, "folder", lambda: place)
    monkeypatch.setattr(_arrays, "counts", _arrays.CacheCounts())
    monkeypatch.delenv(_arrays.LIMIT_VARIABLE, raising=False)
    gc.collect()  # level sets of tests before, which would be found in the process
    return place


def digest_of(num_envs: int = 2, steps: int = 60) -> str:
    """Return a digest of everything that some environments say on the way."""
    digest = Digest()
    env = NPlusPlusVectorEnv(EnvironmentConfig(**SETTINGS), num_envs, num_threads=1)
    env.reset(seed=3)
    for actions in choices(steps, num_envs):
        observation, reward, terminated, truncated, info = env.step(actions)
        for i in range(num_envs):
            row = {name: array[i] for name, array in observation.items()}
            digest.add(row, reward[i], terminated[i], truncated[i], info["level"][i])
    env.close()
    return str(digest)


def arrays_digest(level_set) -> str:
    digest = hashlib.sha256()
    for array in (*level_set.arrays, *level_set.fields):
        digest.update(repr((array.dtype, array.shape)).encode() + array.tobytes())
    return digest.hexdigest()


def nodes(env) -> dict:
    return {node.name: node for _, node in env.memory().walk()}


def test_environments_of_equal_levels_share_them(folder):
    first = NPlusPlusEnv(**SETTINGS)
    others = [NPlusPlusEnv(**SETTINGS) for _ in range(3)]
    vector = NPlusPlusVectorEnv(EnvironmentConfig(**SETTINGS), 2)
    drawn = peek.step_arrays(first).pictures
    for env in (*others, vector):
        assert env.level_set is first.level_set
        assert peek.step_arrays(env).pictures.global_view.layers is drawn.global_view.layers
        assert peek.step_arrays(env).pictures.glyphs is drawn.glyphs
    assert _arrays.counts == _arrays.CacheCounts(memory_hits=4, misses=2)  # level arrays and static layers
    assert level_library().held_sets >= 1
    vector.close()


def test_other_levels_or_names_are_other_level_sets(folder):
    config = EnvironmentConfig(levels=(WALK,), observations=("game_state",))
    renamed = corridor((3, 126), (4, 86), title="another title")
    assert renamed.raw.digest == WALK.raw.digest
    environments = [NPlusPlusEnv(config.replace(levels=levels)) for levels in [(WALK,), (renamed,), (WALK, renamed)]]
    assert [env.level_names for env in environments] == [
        ("corridor",),
        ("another title",),
        ("corridor", "another title"),
    ]
    assert len({id(env.level_set) for env in environments}) == 3
    assert _arrays.counts == _arrays.CacheCounts(misses=2, file_hits=1)  # one file for equal contents


def test_unused_level_sets_are_not_held(folder):
    env = NPlusPlusEnv(**SETTINGS)
    held = level_library().held_sets
    env.close()
    del env
    gc.collect()
    assert level_library().held_sets == held - 1
    NPlusPlusEnv(**SETTINGS)
    assert _arrays.counts == _arrays.CacheCounts(misses=2, file_hits=2)


def test_memory_says_what_is_shared_and_mapped(folder, monkeypatch):
    found = nodes(NPlusPlusEnv(**SETTINGS))
    for name in ("codes", "static layers", "segments"):
        assert found[name].mapped
        assert found[name].shared
    assert not found["ninjas"].mapped
    gc.collect()
    monkeypatch.setenv(_arrays.LIMIT_VARIABLE, "0")
    plain = nodes(NPlusPlusEnv(**SETTINGS))
    assert not plain["codes"].mapped
    assert {name: node.total_bytes for name, node in plain.items()} == {
        name: node.total_bytes for name, node in found.items()
    }


def test_mapped_arrays_are_those_that_pack_returns(folder):
    levels = load_levels(LEVELS)
    packed = pack(levels, with_distances=True)
    for _ in range(2):
        shared = shared_level_set(levels)
        assert arrays_digest(shared) == arrays_digest(packed)
        assert tuple(shared.arrays._asdict()) + tuple(shared.fields._asdict()) == tuple(ARRAYS_LAYOUT)
        sizes = (shared.max_entities, shared.max_movers, shared.max_trail)
        assert sizes == (packed.max_entities, packed.max_movers, packed.max_trail)
        assert shared.names == packed.names
        del shared
        gc.collect()
    assert _arrays.counts == _arrays.CacheCounts(misses=1, file_hits=1)


def test_episodes_are_the_same_mapped_or_not(folder, monkeypatch):
    written, mapped = digest_of(), digest_of()
    monkeypatch.setenv(_arrays.LIMIT_VARIABLE, "0")
    assert written == mapped == digest_of()
    assert _arrays.counts == _arrays.CacheCounts(misses=4, file_hits=2)
    assert digest_of(steps=59) != written


@compiled_only
def test_nothing_is_compiled_for_mapped_arrays(folder, monkeypatch):
    monkeypatch.setenv(_arrays.LIMIT_VARIABLE, "0")
    digest_of(steps=1)
    signatures = [tuple(kernel.signatures) for kernel in (step_range, reset_range)]
    monkeypatch.delenv(_arrays.LIMIT_VARIABLE)
    digest_of(steps=1)
    assert _arrays.counts.misses == 4
    assert _arrays.files()
    assert [tuple(kernel.signatures) for kernel in (step_range, reset_range)] == signatures


def play_elsewhere(folder, answers):
    """Play in another process with the files of this one."""
    read_glyphs()
    _arrays.folder = lambda: Path(folder)
    _arrays.counts = _arrays.CacheCounts()
    answers.put((os.getpid(), digest_of(), _arrays.counts))


@pytest.mark.parametrize("method", [pytest.param("spawn", marks=pytest.mark.slow), "fork"])
def test_another_process_maps_the_files(folder, method):
    here = digest_of()
    env = NPlusPlusEnv(**SETTINGS)  # holds the level set, which a forked child then holds too
    context = multiprocessing.get_context(method)
    answers = context.Queue()
    process = context.Process(target=play_elsewhere, args=(str(folder), answers))
    process.start()
    pid, there, counts = answers.get(timeout=600)
    process.join()
    assert pid != os.getpid()
    assert there == here
    expected = {"spawn": _arrays.CacheCounts(file_hits=2), "fork": _arrays.CacheCounts(memory_hits=1)}
    assert counts == expected[method]
    assert process.exitcode == 0
    env.close()


def test_nothing_of_a_level_is_compiled_when_its_arrays_are_mapped(folder, monkeypatch):
    written = arrays_digest(shared_level_set(load_levels([WALK])))
    gc.collect()

    def refuse(level):
        raise AssertionError(f"{level.name} was compiled although its arrays are in a file")

    monkeypatch.setattr(level_set_module, "compile_level", refuse)
    assert arrays_digest(shared_level_set(load_levels([WALK]))) == written
    with pytest.raises(AssertionError, match="quick win was compiled"):
        shared_level_set(load_levels([QUICK_WIN]))


def test_a_pickled_level_is_small_and_compiles_to_the_same_arrays():
    level = load_level(WALK)
    small = pickle.dumps(level)
    assert len(small) < 3000
    again = pickle.loads(small)
    assert again.name == level.name
    for here, there in zip(compile_level(level), compile_level(again), strict=True):
        assert here.tobytes() == there.tobytes()


def test_the_library_says_what_it_holds(folder):
    env = NPlusPlusEnv(**SETTINGS)
    status = level_library()
    assert status.folder == folder
    assert {name.split("-")[0] for name, _ in status.files} == {"levels", "layers"}
    assert status.file_bytes == sum(path.stat().st_size for path in folder.rglob("*.npy"))
    assert status.limit_bytes == 2_000_000_000
    assert status.held_bytes >= env.level_set.memory().total_bytes
    assert status.counts == _arrays.CacheCounts(misses=2)
    assert status.counts is not _arrays.counts
    text = str(status)
    assert "MB  of 2000 in " in text
    assert "with 0 hits in memory, 0 in files and 2 misses (0 damaged)" in text


def test_the_command_lists_and_clears(folder, capsys):
    shared_level_set(load_levels([WALK]))
    assert main(["levels", "cache"]) == 0
    listed = capsys.readouterr().out
    assert "levels-" in listed
    assert str(folder) in listed
    assert main(["levels", "cache", "--clear"]) == 0
    cleared = capsys.readouterr().out
    assert f"removed 1 group of arrays from {folder}" in cleared
    assert "levels-" not in cleared
    assert _arrays.files() == []


def test_damaged_levels_are_compiled_again(folder):
    digest = digest_of()
    for group, _ in _arrays.files():
        path = next(group.iterdir())
        data = path.read_bytes()
        path.unlink()
        path.write_bytes(data[:-1])
    assert digest_of() == digest
    assert _arrays.counts.damaged == 2
