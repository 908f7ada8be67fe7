"""ONNX: the block of the page "Use a policy" runs, and its file computes what the policy does."""

import runpy

import numpy as np
import pytest

pytest.importorskip("onnxruntime")

from tests.docs.pages import ROOT
from tests.docs.test_examples import blocks


def test_the_recipe_gives_the_same_logits(tmp_path, monkeypatch):
    import torch

    (recipe,) = (block for block in blocks(ROOT / "docs/training/use.md", "python") if "import onnxruntime" in block)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "recipe.py").write_text(recipe)
    names = runpy.run_path("recipe.py")
    states = np.random.default_rng(0).random((50, 30), np.float32)
    (logits,) = names["session"].run(None, {"game_state": states})
    with torch.inference_mode():
        expected = names["policy"].network({"game_state": torch.from_numpy(states)})[0].numpy()
    assert abs(logits - expected).max() < 1e-5  # another library multiplies matrices
    assert abs(logits[:1] - expected[1:]).max() > 1e-5
