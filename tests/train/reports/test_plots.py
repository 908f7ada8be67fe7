"""The plots of runs."""

import itertools

import cv2
import pytest

from nclone_env.train.config import TrainConfig
from nclone_env.train.reports import plots
from nclone_env.train.reports.comparison import by_levels
from nclone_env.train.reports.plots import comparison, write_learning_curve

from .test_comparison import group, record, sweep

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


def test_comparison():
    alone, together = group(record(0)), group(record(0), record(1, rate=0.9))
    pictures = []
    for groups in ([alone], [together], [alone, together]):
        pictures.append(comparison([("a$1_$.toml", groups)]))
    assert len(set(pictures)) == 3


@pytest.fixture
def figure(monkeypatch):
    """The figure that was saved last."""
    saved = []

    def keep(figure):
        figure.canvas.draw()
        saved.append(figure)
        return b""

    monkeypatch.setattr(plots, "_png", keep)
    return lambda: saved[-1]


def test_no_legend_and_no_label_of_a_sweep_covers_a_curve(figure):
    comparison(by_levels(sweep()))
    drawn = figure()
    boxes = [axes.get_window_extent() for axes in drawn.axes]
    legends = [axes.get_legend() for axes in drawn.axes if axes.get_legend()]
    assert len(legends) == len(by_levels(sweep()))
    for legend in legends:
        assert not any(legend.get_window_extent().overlaps(box) for box in boxes)
    width, height = drawn.canvas.get_width_height()
    assert all(box.x0 >= 0 and box.x1 <= width and box.y0 >= 0 and box.y1 <= height for box in boxes)


def test_labels_stand_at_the_ends_of_the_lines_and_apart(figure, tmp_path):
    marks = {"sampled": 0.85, "argmax": 0.84}
    write_learning_curve(ROWS, tmp_path / "x.png", TrainConfig.of(levels=("jumps",)), 0.01, marks)
    upper = figure().axes[0]
    texts = {text.get_text(): text.get_window_extent() for text in upper.texts}
    assert "evaluated, sampled: 85.0%" in texts
    assert "no episode\nhad ended yet" in texts
    axes = upper.get_window_extent()
    labels = [box for text, box in texts.items() if ":" in text]
    assert len(labels) == 5
    assert all(box.x0 >= axes.x1 for box in labels)
    assert not any(one.overlaps(other) for one, other in itertools.combinations(labels, 2))
    assert upper.yaxis.get_major_formatter()(0.5) == "50%"
