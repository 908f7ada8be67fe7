"""Hatchling's hook for wheels: with ``NCLONE_ENV_CODE=1`` a wheel for this platform and Python, with machine code.

Without the variable the wheel is pure Python. The kernels are those of ``nclone-env warmup``, compiled by the sources
that are packed, in processes that load nothing else, once for each baseline of the architecture. So the interpreter
that builds needs the dependencies: ``python -m build --wheel --no-isolation``, or ``make wheels``.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

BASELINES = {"x86_64": ("x86-64-v3", "x86-64-v2"), "aarch64": ("generic",), "arm64": ("generic",)}
LINUX = "manylinux_2_28"  # as Numba's wheels: the code itself calls only what Numba resolves
FINISH = """
import sys
from pathlib import Path
from nclone_env.jit.cache import write_manifest
write_manifest(Path(sys.argv[1]), sys.argv[2:])
"""


class CodeHook(BuildHookInterface):
    """Adds compiled kernels to the wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile, and say what is packed."""
        if os.environ.get("NCLONE_ENV_CODE") != "1" or version == "editable":
            return
        if architecture() not in BASELINES:
            sys.exit(
                f"NCLONE_ENV_CODE=1: expected one of {', '.join(BASELINES)}, got {architecture()}: build without it"
            )
        self._folder = Path(tempfile.mkdtemp())
        code = compile_kernels(Path(self.root), self._folder, BASELINES[architecture()])
        build_data["pure_python"] = False
        build_data["tag"] = f"{python_tag()}-{platform_tag()}"
        build_data["force_include"][os.fspath(code)] = "nclone_env/_code"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove what was compiled."""
        if hasattr(self, "_folder"):
            shutil.rmtree(self._folder)


def compile_kernels(root: Path, folder: Path, baselines: tuple[str, ...]) -> Path:
    """Compile all kernels for some baselines, from an empty cache; return the folder of the code with its manifest.

    Args:
        root: of the repository.
        folder: for temporary files.
        baselines: names of processors.
    """
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("NUMBA", "NCLONE", "PYTHON"))}
    variables = {**kept, "PYTHONPATH": os.fspath(root), "NCLONE_ENV_CACHE_DIR": os.fspath(folder / "cache")}
    for name in baselines:
        own = {**variables, "NUMBA_CPU_NAME": name, "NUMBA_CPU_FEATURES": ""}
        subprocess.run([sys.executable, "-m", "nclone_env", "warmup"], cwd=folder, env=own, check=True)
    subprocess.run([sys.executable, "-m", "nclone_env", "warmup", "cuda"], cwd=folder, env=own, check=True)
    (code,) = (path for path in (folder / "cache").iterdir() if path.name != "levels")
    subprocess.run([sys.executable, "-c", FINISH, os.fspath(code), *baselines], cwd=folder, env=variables, check=True)
    return code


def architecture() -> str:
    """Return the architecture that kernels are compiled for; Windows calls x86_64 AMD64."""
    name = platform.machine().lower()
    return "x86_64" if name == "amd64" else name


def python_tag() -> str:
    """Return the tags of interpreter and ABI."""
    number = f"cp{sys.version_info[0]}{sys.version_info[1]}"
    return f"{number}-{number}{getattr(sys, 'abiflags', '')}"


def platform_tag() -> str:
    """Return the tag of system and architecture; code is for one of the two of a universal Python of macOS."""
    tag = sysconfig.get_platform().replace("-", "_").replace(".", "_").replace("universal2", architecture())
    return tag.replace("linux", LINUX, 1)
