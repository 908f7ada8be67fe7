"""Tables and plots of verified submissions."""

import io
import re
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from nclone_env._files import unless_it_fails, write_file
from nclone_env.benchmark.scores import Score, headline, measures, normalised, performance_profile
from nclone_env.benchmark.submission import Submission
from nclone_env.benchmark.track import Track, load_track
from nclone_env.benchmark.verification import Verification
from nclone_env.errors import optional_module, plain

TITLES = (
    *("policy", "success", "most probable", "any", "speed", "normalised speed"),
    *("mode", "budget and claimed use of it", "seeds", "proof"),
)
_SPECIAL = re.compile(r"[^\w .,+/()-]|_|\A\W")
"""What can be markup: written as an entity."""
_MOST_CODE = 1000
"""Characters of a command that are shown."""
_GUIDE = "](benchmark.md)"
_PUBLIC_GUIDE = "](https://github.com/nclone-env/nclone-env/blob/main/docs/benchmark.md)"
_HEAD = f"""---
hide: [toc]
---

# Results

Each row was replayed by the simulator from the inputs of all its episodes before it was written here; [Benchmark
tracks{_GUIDE} explains tracks, scores and proofs. `nclone-env benchmark table` writes this page.

Cells are interquartile means over levels and seeds in percent, with 95 % intervals of a stratified bootstrap over seeds
in brackets where there are several. Normalised speed is the mean between that of random play (0) and that of the best
known solutions (100). Proof by inputs: these actions win these levels. Where the policy is included too,
`nclone-env benchmark verify --policies` lets it choose them again.
"""
_OF_AUTHORS = """Cells are means over levels and seeds, with intervals of a bootstrap over packs, each of which stands
for an author, over their levels, and over seeds.
"""


def row(track: Track, submission: Submission, verification: Verification) -> list[str]:
    """Return the cells of a submission, as ``TITLES`` names them."""
    found = verification.scores
    cells = [_cell(track, found[name]) if name in found else "-" for name in ("success", "probable", "any", "speed")]
    proof = "inputs, policy" if all(run.policy for run in submission.runs) else "inputs"
    scaled = f"{100 * normalised(track, found, 'speed'):z.1f}"
    units = track.budgets[submission.budget]
    used = ", ".join(f"{max(run.claimed[unit] for run in submission.runs):,} {unit}" for unit in units)
    terms = [submission.mode, f"{submission.budget}: {used}", str(len(submission.runs)), proof]
    return [_escaped(submission.title), *cells, scaled, *terms]


def _cell(track: Track, score: Score) -> str:
    shown = f"{100 * headline(track, score):.1f}"
    if score.low is None or score.high is None:
        return shown
    interval = f"({100 * score.low:.1f} to {100 * score.high:.1f})".replace(" ", "\N{NO-BREAK SPACE}")
    return f"{shown} {interval}"


def write_results(entries: Sequence[tuple[Submission, Verification]], output: Path, plots: bool) -> None:
    """Write the page of results, and next to it, if asked for, the performance profiles of each track."""
    pictures: dict[str, str] = {}
    for name in sorted({submission.track for submission, _ in entries}) if plots else ():
        path = output.with_name(f"{output.stem}-{name.lower()}.png")
        with unless_it_fails(path):
            drawn = _profiles([entry for entry in entries if entry[0].track == name])
            pictures[name] = path.name
        if name in pictures:
            write_file(path, drawn)
    has_guide = output.with_name("benchmark.md").exists()
    write_file(output, page(entries, pictures).replace(_GUIDE, _GUIDE if has_guide else _PUBLIC_GUIDE).encode())


def page(entries: Sequence[tuple[Submission, Verification]], pictures: Mapping[str, str]) -> str:
    """Return the page of results, Markdown; ``pictures`` names the file of the profiles of each track that has one."""
    lines = [_HEAD]
    for name in sorted({submission.track for submission, _ in entries}):
        track = load_track(name)
        own = [(one, found) for one, found in entries if one.track == name]
        own.sort(key=lambda pair: -headline(track, pair[1].scores["speed"]))
        lines += [f"## {name}\n", f"{track.title}\n"]
        lines += [_OF_AUTHORS] if track.authors else []
        lines += [_markdown(TITLES, [row(track, *pair) for pair in own])]
        lines += ["\n| policy | mode | command |\n|---|---|---|"]
        lines += [f"| {_escaped(one.title)} | {one.mode} | `{_one_line(one.command)}` |" for one, _ in own]
        lines.append("")
        if track.parts:
            lines += [_of_parts(track, own), ""]
        if name in pictures:
            lines += [f"![Share of levels and seeds above each speed]({pictures[name]})", ""]
    return "\n".join(lines)


def _of_parts(track: Track, own: Sequence[tuple[Submission, Verification]]) -> str:
    """Return the mean success in each part of the levels."""
    rows = []
    for submission, _ in own:
        success = np.mean([measures(track, run)["success"] for run in submission.runs], axis=0)
        means = [f"{100 * success[part].mean():.1f}" for part in track.parts.values()]
        rows.append([_escaped(submission.title), submission.mode, *means])
    what = "band of difficulty, the easiest first" if track.bands > 1 else "pack"
    return f"Mean success in percent by {what}:\n\n{_markdown(('policy', 'mode', *track.parts), rows)}"


def _escaped(text: str) -> str:
    """Return a text as Markdown that stays text in its cell, in any dialect: an author chooses it."""
    return _SPECIAL.sub(lambda found: f"&#{ord(found[0])};", " ".join(text.split()))


def _one_line(code: str) -> str:
    """Return a text for a code span in a cell."""
    line = plain(" ".join(code.split())).replace("`", "'").replace("|", "\\|")
    return line if len(line) <= _MOST_CODE else f"{line[:_MOST_CODE].rstrip(chr(92))} ..."


def _markdown(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    marks = ["---" if place < 1 else "---:" for place in range(len(titles))]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (titles, marks, *rows))


def _profiles(entries: Sequence[tuple[Submission, Verification]]) -> bytes:
    """Plot the performance profiles of the submissions of a track as PNG."""
    figure = optional_module("matplotlib.figure", "train").Figure(figsize=(6, 5), layout="constrained")
    axes = figure.subplots()
    track = load_track(entries[0][0].track)
    shown = sorted(entries, key=lambda entry: -headline(track, entry[1].scores["speed"]))
    speeds = [np.stack([measures(track, run)["speed"] for run in one.runs]) for one, _ in shown]
    fastest = max(1.0, *(np.quantile(values, 0.98) for values in speeds))
    thresholds = np.linspace(0, fastest, 201)
    lines = [axes.plot(thresholds, performance_profile(values, thresholds))[0] for values in speeds]
    axes.set(
        xlabel="speed, mean of the attempts on a level",
        ylabel="share of levels and seeds above",
        xlim=(0, fastest),
        ylim=(0, 1),
    )
    axes.set_title(track.name)
    legend = figure.legend(lines, [" "] * len(lines), fontsize=8, loc="outside lower center", ncols=2)
    for text, (one, _) in zip(legend.get_texts(), shown, strict=True):  # labels would hide titles that begin with "_"
        text.set_parse_math(False)
        text.set_text(f"{one.title}, {one.mode}, {one.budget}")
    with warnings.catch_warnings(action="ignore"):  # letters that the font lacks
        file = io.BytesIO()
        figure.savefig(file, dpi=130, format="png")
    return file.getvalue()
