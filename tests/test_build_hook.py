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
    assert build_data["tag"] == f"{version}-{version}{getattr(sys, 'abiflags', '')}-manylinux_2_28_x86_64"
    assert not build_data["pure_python"]
    assert target == "nclone_env/_code"
    assert Path(code).parent.is_dir()
    hook.finalize("standard", build_data, "")
    assert not Path(code).parent.exists()


@pytest.mark.parametrize(
    ("system", "machine", "tag", "baselines"),
    [
        ("linux-aarch64", "aarch64", "manylinux_2_28_aarch64", 1),
        ("win-amd64", "AMD64", "win_amd64", 2),
        ("win-arm64", "ARM64", "win_arm64", 1),
        ("macosx-11.0-arm64", "arm64", "macosx_11_0_arm64", 1),
        ("macosx-10.13-universal2", "arm64", "macosx_10_13_arm64", 1),
        ("macosx-10.13-universal2", "x86_64", "macosx_10_13_x86_64", 2),
    ],
)
def test_each_system_has_baselines_and_a_tag(hook, monkeypatch, system, machine, tag, baselines):
    monkeypatch.setattr("sysconfig.get_platform", lambda: system)
    monkeypatch.setattr("platform.machine", lambda: machine)
    compiled = []
    monkeypatch.setattr(
        "hatch_build.compile_kernels", lambda root, folder, names: compiled.append(names) or folder / "code"
    )
    monkeypatch.setenv("NCLONE_ENV_CODE", "1")
    build_data = {"force_include": {}}
    hook.initialize("standard", build_data)
    hook.finalize("standard", build_data, "")
    assert build_data["tag"].endswith(f"-{tag}")
    assert [len(names) for names in compiled] == [baselines]


def test_an_architecture_without_baselines_is_one_line(hook, monkeypatch):
    monkeypatch.setattr("platform.machine", lambda: "riscv64")
    monkeypatch.setenv("NCLONE_ENV_CODE", "1")
    with pytest.raises(SystemExit, match="expected one of x86_64, aarch64, arm64, got riscv64: build without it"):
        hook.initialize("standard", {"force_include": {}})
