"""The plots of runs."""

import importlib

import cv2
import pytest

from nclone_env.errors import MissingExtraError
from nclone_env.train.config import TrainConfig
from nclone_env.train.reports.plots import write_comparison, write_learning_curve

from .test_comparison import group, record

ROWS = [
    {"timesteps": s, "success_rate": rate, "min_success_rate": rate, "mean_return": rate}
    for s, rate in ((1, float("nan")), (2, 0.1), (3, 0.7))
]


def test_learning_curve(tmp_path):
    path = tmp_path / "curve.png"
    pictures = []
    for rows, random in (
        (ROWS, 0.1),
        (ROWS, 0.2),
        ([ROWS[0], {**ROWS[1], "held_out_success": 0.5, "held_out_any": 0.9}], 0.1),
    ):
        write_learning_curve(rows, path, TrainConfig.of(levels=("a$1_$.toml",)), random)
        pictures.append(path.read_bytes())
    assert cv2.imread(str(path)).shape == (720, 960, 3)
    assert len(set(pictures)) == 3
    assert [p.name for p in path.parent.iterdir()] == ["curve.png"]


def test_comparison(tmp_path):
    path = tmp_path / "comparison.png"
    alone, together = group(record(0)), group(record(0), record(1, rate=0.9))
    pictures = []
    for groups in ([alone], [together], [alone, together]):
        write_comparison(groups, path, "a$1_$.toml")
        pictures.append(path.read_bytes())
    assert len(set(pictures)) == 3


def test_the_missing_package_is_named(tmp_path, monkeypatch):
    def refuse(name):
        raise ImportError(name)

    monkeypatch.setattr(importlib, "import_module", refuse)
    with pytest.raises(MissingExtraError, match=r'matplotlib .* pip install "\.\[train\]"'):
        write_learning_curve([], tmp_path / "x", TrainConfig())
