"""The build hook: a pure wheel without the variable, a tagged wheel with code with it."""

import os
import sys
import sysconfig
from pathlib import Path

import pytest

pytest.importorskip("hatchling")
ROOT = Path(__file__).parents[1]


@pytest.fixture
def hook(monkeypatch):
    """The hook of a wheel, and the module it is in; kernels are not compiled."""
    monkeypatch.syspath_prepend(os.fspath(ROOT))
    import hatch_build

    monkeypatch.setattr(hatch_build, "compile_kernels", lambda root, folder, baselines: folder / "code")
    return hatch_build.CodeHook(os.fspath(ROOT), {}, None, None, "dist", "wheel")


@pytest.mark.parametrize(("variable", "version"), [("", "standard"), ("0", "standard"), ("1", "editable")])
def test_nothing_is_added_unless_it_is_asked_for(hook, monkeypatch, variable, version):
    monkeypatch.setenv("NCLONE_ENV_CODE", variable)
    build_data = {"force_include": {}}
    hook.initialize(version, build_data)
    hook.finalize(version, build_data, "")
    assert build_data == {"force_include": {}}


@pytest.mark.skipif(sysconfig.get_platform() != "linux-x86_64", reason="names the platform")
def test_a_wheel_with_code_is_for_this_platform_and_python(hook, monkeypatch):
    monkeypatch.setenv("NCLONE_ENV_CODE", "1")
    build_data = {"force_include": {}}
    hook.initialize("standard", build_data)
    ((code, target),) = build_data["force_include"].items()
    version = f"cp{sys.version_info[0]}{sys.version_info[1]}"
    assert build_data["tag"] == f"{version}-{version}{sys.abiflags}-manylinux_2_28_x86_64"
    assert not build_data["pure_python"]
    assert target == "nclone_env/_code"
    assert Path(code).parent.is_dir()
    hook.finalize("standard", build_data, "")
    assert not Path(code).parent.exists()
