"""The bundled policies as pages load them: their weights, read from the checkpoints without torch."""

import pickle
import tomllib
import zipfile
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

_FOLDER = Path(__file__).parents[1] / "policies"
RULES = (
    "dtype",
    "paths",
    "frame_skip",
    "frame_stack",
    "max_frames",
    "local_position",
    "locals_size",
    "locals_planes",
    "outcome_frames",
)
"""Fields of the configuration that decide what a policy observes, and for how long it acts."""
OBSERVED = {"game_state", "locals", "free_motion", "action_outcomes"}
"""Observations that ``play.wasm`` writes."""
_ARCHIVE = "archive"


class PagePolicy(NamedTuple):
    """A policy for ``policies.js``.

    Attributes:
        name: of the bundled policy.
        title: what it does, in words.
        environment: its ``observations``, and the fields of its configuration that decide what these show.
        inputs: names of the observations in the order in which the network takes them.
        layers: of the policy, in order; index of weight and of bias in ``weights``, units, and width of the inputs.
        encoders: the layer of each observation that has one.
        recurrence: the layers of a gated recurrent unit, for features and for its state; none without memory.
        weights: float32, those of the value function left out.
    """

    name: str
    title: str
    environment: Mapping[str, Any]
    inputs: Sequence[str]
    layers: Sequence[tuple[int, int, int, int]]
    encoders: Mapping[str, tuple[int, int, int, int]]
    recurrence: Sequence[tuple[int, int, int, int]]
    weights: bytes


@cache
def page_policies() -> tuple[PagePolicy, ...]:
    """Return the bundled policies whose observations pages have, by name."""
    found = map(_read, sorted(_FOLDER.glob("*.pt"), key=lambda path: path.stem))
    return tuple(policy for policy in found if set(policy.environment["observations"]) <= OBSERVED)


def _read(path: Path) -> PagePolicy:
    with zipfile.ZipFile(path) as archive, archive.open(f"{_ARCHIVE}/data.pkl") as pickled:
        content = _Reader(pickled).load()
        weights, encoders = bytearray(), {}
        layers: list[tuple[int, int, int, int]] = []
        recurrence: list[tuple[int, int, int, int]] = []
        for name, *keys, shape in _layers(content["policy"]):
            places = []
            for key in keys:
                places.append(len(weights) // 4)
                weights += archive.read(f"{_ARCHIVE}/data/{key}")
            layer = (places[0], places[1], *shape)
            if name.startswith("encoders."):
                encoders[name.split(".")[1]] = layer
            else:
                (recurrence if name == "recurrence" else layers).append(layer)
    config = content["train_config"]
    return PagePolicy(
        name=path.stem,
        title=tomllib.loads(path.with_suffix(".toml").read_text(encoding="utf-8"))["title"],
        environment={"observations": config["observations"], **{name: config[name] for name in RULES}},
        inputs=list(content["observation_shapes"]),
        layers=layers,
        encoders=encoders,
        recurrence=recurrence,
        weights=bytes(weights),
    )


def _layers(parameters: Mapping[str, Any]) -> Iterator[tuple[str, str, str, tuple[int, int]]]:
    """Yield the name of each layer without those of the value function, the keys of weight and bias, and its shape."""
    for name, weight in parameters.items():
        layer, _, part = name.rpartition(".")
        if part.startswith("weight") and not layer.startswith(
            "critic"
        ):  # "weight_ih" and "weight_hh" of a recurrent layer
            yield layer, weight.key, parameters[f"{layer}.{part.replace('weight', 'bias')}"].key, weight.shape


class _Stored(NamedTuple):
    """A tensor: the key of its storage, which it fills, and its shape."""

    key: str
    shape: tuple[int, ...]


def _stored(key: str, _: int, shape: tuple[int, ...], *__: Any) -> _Stored:
    """Return a tensor, from the arguments of torch's own function."""
    return _Stored(key, shape)


class _Reader(pickle.Unpickler):
    """Reads the pickle of a checkpoint: plain values and tensors, nothing else."""

    def find_class(self, module: str, name: str) -> Any:
        """Return what stands for a class or function."""
        if (module, name) == ("torch._utils", "_rebuild_tensor_v2"):
            return _stored
        if (module, name) == ("collections", "OrderedDict"):
            return OrderedDict
        if module == "torch" and name.endswith("Storage"):
            return name
        raise pickle.UnpicklingError(f"expected values and tensors, got {module}.{name}")

    def persistent_load(self, identity: tuple[str, ...]) -> str:
        """Return the key of a storage."""
        return identity[2]
