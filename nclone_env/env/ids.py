"""The ids of the environment, and their registration with Gymnasium.

They are registered by the names of the classes, when both the package and Gymnasium are imported, in either order: the
package imports neither. A program that only simulates, plans or profiles has none of their modules.
"""

import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

ENVIRONMENT_ID = "nclone/NPlusPlus-v0"

_STATE = {"observations": "game_state", "dict_observations": False}
_FRAMES = {"player_frame_size": 84, "player_frame_scale": 4.0}
_PIXELS = {"observations": "player_frame", "dict_observations": False, "observation": {"frame_stack": 4}}

REGISTERED: dict[str, dict[str, Any]] = {
    ENVIRONMENT_ID: {},
    "nclone/NPlusPlus-State-v0": _STATE,
    "nclone/NPlusPlus-Pixels-v0": {**_PIXELS, "render": _FRAMES},
    "nclone/NPlusPlus-FirstSteps-v0": {**_STATE, "levels": "first-steps", "max_frames": 1200},
    "nclone/NPlusPlus-Jumps-v0": {**_STATE, "levels": "jumps", "max_frames": 1200},
    "nclone/NPlusPlus-Hazards-v0": {**_STATE, "levels": "hazards", "max_frames": 1200},
    **{f"nclone/NPlusPlus-Motifs{n}-v0": {**_STATE, "levels": f"motifs-{n}", "max_frames": 2400} for n in range(1, 10)},
    "nclone/NPlusPlus-Motifs10-v0": {**_STATE, "levels": "motifs-10", "max_frames": 3600},
}
"""The registered ids, and the fields of the configuration in which each differs from the defaults."""


def register() -> None:
    """Register the ids of ``REGISTERED`` for ``gymnasium.make`` and ``gymnasium.make_vec``, now or with its import."""
    module = sys.modules.get("gymnasium")
    if module is not None:
        _register_in(module)
    elif _WITH_IMPORT not in sys.meta_path:
        sys.meta_path.insert(0, _WITH_IMPORT)


def _register_in(gymnasium: ModuleType) -> None:
    if not hasattr(gymnasium, "registry"):  # a program may have a module of this name
        return
    for name, fields in REGISTERED.items():
        if name not in gymnasium.registry:
            gymnasium.register(
                id=name,
                entry_point="nclone_env.env.single:NPlusPlusEnv",
                vector_entry_point="nclone_env.env.create:create_vector_environment",
                kwargs=fields,
            )


class _WithImport:
    """Finder of Gymnasium that asks the others and has the ids registered at the end of its import, once."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the specification that the other finders have of Gymnasium; None for any other module."""
        if name != "gymnasium":
            return None
        others = [finder for finder in sys.meta_path if finder is not self and hasattr(finder, "find_spec")]
        spec = next(filter(None, (finder.find_spec(name, path, target) for finder in others)), None)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader)  # type: ignore[assignment]
        return spec


class _Loader:
    """Loader of Gymnasium that gives way to the one it was found by: the module has that."""

    def __init__(self, loader: Any):
        self._loader = loader

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def exec_module(self, module: ModuleType) -> None:
        """Run the module, then register the ids."""
        assert module.__spec__ is not None
        module.__loader__ = module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        with suppress(ValueError):  # another thread was faster
            sys.meta_path.remove(_WITH_IMPORT)
        _register_in(module)


_WITH_IMPORT: Any = _WithImport()
