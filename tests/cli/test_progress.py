"""The progress line."""

import io

import pytest

from nclone_env._table import bar
from nclone_env.cli.progress import LevelProgress, StatusLine, TrainingProgress, progress_line, remaining

ROW = {
    "timesteps": 250_000,
    "steps_per_second": 43_210.9,
    "episodes": 1234,
    "success_rate": 0.5,
    "min_success_rate": 0.25,
    "mean_return": 3.14159,
    "kilobytes_per_environment": 0.72,
}


def test_line():
    assert progress_line(ROW, 1_000_000, 12.4) == (
        "[#####               ]  25%   12 s, 17 s left  43,211 steps/s  1,234 episodes  success 50.0% (worst 25.0%)  "
        "return 3.14  0.7 KB/env"
    )


def test_remaining_time():
    texts = [remaining(seconds) for seconds in (0.0, 119.4, 120.0, 7100.0, 7200.0, 90_000.0)]
    assert texts == ["0 s left", "119 s left", "2 min left", "118 min left", "2.0 h left", "25.0 h left"]


def test_line_before_the_first_episode_ends():
    nan = float("nan")
    row = ROW | {"episodes": 0, "success_rate": nan, "min_success_rate": nan, "mean_return": nan}
    assert progress_line(row, 1_000_000, 1.0).endswith("0 episodes  0.7 KB/env")


def test_plain_stream_gets_periodic_lines_and_the_last_one():
    stream = io.StringIO()
    progress = TrainingProgress(1_000_000, stream, interval=1e9)
    for _ in range(3):
        progress(ROW)
    assert stream.getvalue() == ""
    progress.finish()
    assert stream.getvalue().count("\n") == 1
    assert "25%" in stream.getvalue()
    assert "left" not in stream.getvalue()  # nothing follows the last line


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_terminal_gets_one_line_rewritten():
    stream = Terminal()
    progress = TrainingProgress(1_000_000, stream)
    progress(ROW)
    progress(ROW)
    assert stream.getvalue().count("\r\x1b[K") == 2
    assert "\n" not in stream.getvalue()


@pytest.mark.parametrize(
    ("stream", "written"),
    [(Terminal(), "\r\x1b[Ka\r\x1b[Kb\n\r\x1b[Kc\r\x1b[K"), (io.StringIO(), "b\n")],
    ids=["terminal", "file"],
)
def test_lines_that_stay_take_the_place_of_the_live_one(stream, written):
    line = StatusLine(stream)
    line.show("a")
    line.put("b")
    line.show("c")
    line.clear()
    assert stream.getvalue() == written


def test_a_plain_stream_gets_lines_now_and_then():
    now, often = io.StringIO(), StatusLine(stream := io.StringIO(), interval=0.0)
    for text in ("a", "b"):
        StatusLine(now, interval=1e9).show(text)
        often.show(text)
    assert (now.getvalue(), stream.getvalue()) == ("", "a\nb\n")


def test_bar():
    assert [bar(share) for share in (0.0, 0.5, 1.0)] == [f"[{' ' * 20}]", f"[{'#' * 10}{' ' * 10}]", f"[{'#' * 20}]"]


def test_what_few_rows_have_stays_in_the_line():
    stream = io.StringIO()
    progress = TrainingProgress(1_000_000, stream, interval=0.0)
    progress(ROW | {"held_out_success": 0.125, "held_out_any": 0.5})
    progress(ROW)
    assert stream.getvalue().count("return 3.14  held out 12.5% (any 50.0%)  0.7 KB/env") == 2


def test_time_is_that_since_the_preparation(monkeypatch):
    clock = iter([0.0, 0.0, 40.0, 47.0, 48.0])  # the display and its line are made, a part is compiled, two rows come
    monkeypatch.setattr("nclone_env.cli.progress.time.monotonic", lambda: next(clock))
    progress = TrainingProgress(1_000_000, Terminal())
    progress.begin()
    progress(ROW)
    assert progress.seconds == 7.0
    progress.begin()  # a part that is prepared later does not set it back
    assert progress.seconds == 7.0


def test_preparation_on_a_plain_stream():
    stream = io.StringIO()
    progress = LevelProgress(stream, interval=0.0)
    progress.level("solutions planned", 1, 4)
    progress.level("solutions planned", 3, 4)
    progress.level("solutions planned", 1, 2)
    progress.level("levels generated", 8, 1_024)
    progress.stage("environments", 12.34)
    progress.stage("storage", 0.09)  # not worth a line
    assert stream.getvalue().splitlines() == [
        "  [#####               ] 1/4 solutions planned  0 s",
        "  [###############     ] 3/4 solutions planned  0 s, 0 s left",
        "  [##########          ] 1/2 solutions planned  0 s",
        "  [                    ] 8/1,024 levels generated  0 s",
        "  environments ready after 12.3 s",
    ]


def test_preparation_is_silent_between_periodic_lines():
    stream = io.StringIO()
    LevelProgress(stream, interval=1e9).level("solutions planned", 1, 4)
    assert not stream.getvalue()
