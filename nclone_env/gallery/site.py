"""Writing a gallery: pages and pictures go to a hidden folder, which then takes the place of the old one.

There is a list of levels and one page that shows them: a level is a script with its map bytes and the inputs of its
runs, which the simulator in the page plays. What comes from level files is text: it is escaped and never obeyed.
"""

import base64
import html
import json
import os
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from string import Template
from typing import Any, NamedTuple

from nclone_env._files import LOCK, expanded, replace_folder, temporary_beside
from nclone_env.errors import ConfigError
from nclone_env.gallery.entries import Entry, GalleryRun
from nclone_env.gallery.policies import RULES, PagePolicy, page_policies
from nclone_env.gallery.tables import game_data
from nclone_env.game import FRAMES_PER_SECOND
from nclone_env.level import write_map
from nclone_env.render import encoded, sprite_sheet

ASSETS = Path(__file__).with_name("assets")
WEB = Path(__file__).with_name("web")
MAGNIFICATION = 4
"""Pixels of a sprite per pixel of the world."""
_ORDERS = {
    "order": "as given",
    "title": "title",
    "shortest": "shortest solution",
    "longest": "longest solution",
    "gold": "most gold",
    "entities": "most entities",
    "easiest": "easiest",
    "hardest": "hardest",
}
MARK = '<meta name="generator" content="nclone-env gallery">'
"""An element that identifies the index of a gallery."""
_STATIC = (".css", ".js")
_OWN = {"index.html", "play.html", "levels.js", "assets", "levels"}
"""Files and folders of a gallery."""


class LevelFiles(NamedTuple):
    """What a gallery has for one level."""

    files: Mapping[str, bytes]
    """Contents by name."""
    runs: int
    """How many runs it shows."""


class PlayedTrack(NamedTuple):
    """A track of the benchmark whose submissions the page can replay."""

    name: str
    digest: str
    hold: int
    """Frames for which an action is held."""
    frames: int
    """Most frames of an episode."""
    attempts: int
    """Sampled episodes a level."""
    levels: Sequence[str]
    """Digests of its levels, or their beginnings, in order."""


def write_site(
    output: str | Path,
    title: str,
    entries: Sequence[Entry],
    written: Iterable[LevelFiles],
    tracks: Iterable[PlayedTrack] = (),
) -> None:
    """Write a gallery, all of it or nothing.

    Args:
        output: folder of the site, or a symbolic link to it; an older gallery there is replaced.
        entries: its levels, at least one.
        written: the files of each.
        tracks: those whose levels are all among the entries are written, too.
    """
    output = Path(os.path.realpath(expanded(output)))  # a link stays, and its target is replaced
    output.parent.mkdir(parents=True, exist_ok=True)
    with temporary_beside(output, folder=True) as folder:
        write_assets(folder / "assets")
        (folder / "levels").mkdir()
        for _, level in zip(entries, written, strict=True):
            for name, data in level.files.items():
                (folder / "levels" / name).write_bytes(data)
        (folder / "index.html").write_text(index_page(title, entries), encoding="utf-8")
        (folder / "play.html").write_text(play_page(title), encoding="utf-8")
        (folder / "levels.js").write_text(level_list(title, entries, tracks), encoding="utf-8")
        replace_folder(folder, output)


def check_output(output: str | Path, force: bool) -> None:
    """Check that a gallery can be written to a folder without loss of other files."""
    output = expanded(output)
    if Path(os.path.realpath(output)).is_symlink():
        raise ConfigError(f"output: expected a new folder or a gallery, got {output}, a symbolic link to itself")
    names = {path.name for path in output.iterdir()} - {LOCK} if output.is_dir() else {output.name}
    if not output.exists() or not names:
        return
    index = output / "index.html"
    if not index.is_file() or MARK not in index.read_text(encoding="utf-8", errors="replace")[:2000]:
        raise ConfigError(f"output: expected a new folder or a gallery, got {output} with other files; choose another")
    others = sorted(names - _OWN)
    if others:
        which = f"{others[0]!r}" + (f" and {len(others) - 1} more" if len(others) > 1 else "")
        raise ConfigError(f"output: expected a gallery alone, got {output} with {which}; move that, or choose another")
    if not force:
        raise ConfigError(f"output: {output} is a gallery already; --force replaces it")


def level_files(entry: Entry) -> LevelFiles:
    """Return the files of one level of a gallery: a script with its data."""
    return LevelFiles({f"{entry.page}.js": level_script(entry).encode()}, len(entry.runs))


def level_script(entry: Entry) -> str:
    """Return the script with the data of a level; ``page.js`` reads it."""
    data = {
        "label": entry.level.name,
        "map": _packed(write_map(entry.level.raw)),
        "facts": list(_facts(entry)),
        "runs": [_run_data(run) for run in entry.runs],
    }
    return f"gallery.data[{script_data(entry.page)}] = {script_data(data)};\n"


def _run_data(run: GalleryRun) -> dict[str, Any]:
    shown = {"label": run.label, "end": run.end, "frames": run.frames, "gold": run.gold}
    return {**shown, "inputs": _packed(run.inputs.tobytes())}


def _packed(data: bytes) -> str:
    """Return data as the page unpacks them: zlib in base64."""
    return base64.b64encode(zlib.compress(data, 9)).decode()


def write_assets(folder: Path) -> None:
    """Write style, scripts, the simulator, the bundled policies, sprites and the icon."""
    folder.mkdir()
    for path in (*ASSETS.iterdir(), WEB / "simulator.js", WEB / "policies.js"):
        if path.suffix in _STATIC:
            (folder / path.name).write_bytes(path.read_bytes())  # an error of a copy names what was read
    for name, picture in _pictures().items():
        (folder / name).write_bytes(picture)
    module = script_data(_packed((WEB / "play.wasm").read_bytes()))
    policies = page_policies()
    for policy in policies:
        (folder / f"policy-{policy.name}.js").write_text(policy_script(policy), encoding="utf-8")
    named = [{"name": policy.name, "title": policy.title} for policy in policies]
    tables = script_data({**game_data(sprite_sheet(MAGNIFICATION), MAGNIFICATION), "policies": named, "rules": RULES})
    text = f"const gallery = {{ data: {{}}, policies: {{}}, module: {module} }};\nconst game = {tables};\n"
    (folder / "game.js").write_text(text, encoding="utf-8")


@lru_cache(maxsize=1)
def _pictures() -> dict[str, bytes]:
    """Return the pictures of the assets by file name; a program that writes several galleries encodes them once."""
    light, dark = sprite_sheet(MAGNIFICATION), sprite_sheet(MAGNIFICATION, "dark")
    sheets = {"sprites.webp": encoded(light.picture, ".webp"), "sprites-dark.webp": encoded(dark.picture, ".webp")}
    return {**sheets, "icon.png": encoded(light.ninja, ".png")}


def policy_script(policy: PagePolicy) -> str:
    """Return the script with a policy; ``page.js`` reads it when the policy is first chosen."""
    data = script_data({**policy._asdict(), "weights": _packed(policy.weights)})
    return f"gallery.policies[{script_data(policy.name)}] = {data};\n"


class Markup(str):
    """HTML that stays as it is; any other text is escaped."""

    __slots__ = ()


_NOTHING = Markup("")


def fill(template: str, **values: object) -> Markup:
    """Return a template of the folder ``assets`` with placeholders, such as ``$title``, replaced by values as text."""
    return Markup(_template(template).substitute({name: escaped(value) for name, value in values.items()}))


def joined(parts: Any) -> Markup:
    """Return fragments of HTML in one."""
    return Markup("\n".join(parts))


def escaped(value: object) -> Markup:
    """Return text as HTML, also for attributes in double quotes; characters that cannot be shown become spaces."""
    if isinstance(value, Markup):
        return value
    return Markup(html.escape("".join(each if each.isprintable() else " " for each in str(value))))


def script_data(value: Any) -> Markup:
    """Return JSON that is inert within a ``script`` element: it contains no ``<``."""
    return Markup(json.dumps(value, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c"))


@lru_cache
def _template(name: str) -> Template:
    return Template((ASSETS / f"{name}.html").read_text(encoding="utf-8"))


def seconds(frames: int) -> str:
    """Return frames as seconds, to the millisecond."""
    return f"{frames / FRAMES_PER_SECOND:.3f} s"


def index_page(title: str, entries: Sequence[Entry]) -> Markup:
    """Return the list of levels."""
    runs = sum(len(entry.runs) for entry in entries)
    several = len({entry.level.raw.author for entry in entries}) > 1
    return fill(
        "index",
        head=fill("head", title=title),
        title=title,
        count=_counted(len(entries), "level"),
        runs=f" · {_counted(runs, 'run')}" if runs else "",
        orders=joined(_orders(entries)),
        cards=joined(_card(number, entry, several) for number, entry in enumerate(entries)),
    )


def play_page(title: str) -> Markup:
    """Return the page that shows the levels."""
    return fill("play", head=fill("head", title=title), title=title)


def level_list(title: str, entries: Sequence[Entry], tracks: Iterable[PlayedTrack] = ()) -> str:
    """Return the script with the title, the levels in order, and the tracks of which all levels are among them."""
    pages = {entry.level.raw.digest: entry.page for entry in entries}
    found = []
    for track in tracks:
        short = {digest[: len(track.levels[0])]: page for digest, page in pages.items()}
        if all(digest in short for digest in track.levels):
            found.append(track._replace(levels=[short[digest] for digest in track.levels])._asdict())
    parts = {
        "title": title,
        "levels": [(entry.page, entry.title) for entry in entries],
        "digests": [digest[:16] for digest in pages],
        "tracks": found,
    }
    return f"Object.assign(gallery, {script_data(parts)});\n"


def _orders(entries: Sequence[Entry]) -> Iterator[Markup]:
    """Yield the orders that tell levels apart."""
    useless = set()
    if not any(entry.best for entry in entries):
        useless |= {"shortest", "longest"}
    if all(entry.facts.difficulty is None for entry in entries):
        useless |= {"easiest", "hardest"}
    for value, text in _ORDERS.items():
        if value not in useless:
            yield Markup(f'<option value="{value}">{text}</option>')


def _card(number: int, entry: Entry, several_authors: bool) -> Markup:
    facts, best = entry.facts, entry.best
    searched = (entry.title, entry.level.name, entry.level.raw.author, *facts.kinds, *facts.known.values())
    return fill(
        "card",
        order=number,
        page=entry.page,
        title=entry.title,
        width=facts.size()[0],
        height=facts.size()[1],
        text=" ".join(searched).lower(),
        line=" · ".join(_card_line(entry, several_authors)),
        gold=facts.gold,
        entities=facts.entities,
        runs=len(entry.runs),
        frames=best.frames if best else "",
        difficulty="" if facts.difficulty is None else facts.difficulty,
    )


def _card_line(entry: Entry, several_authors: bool) -> Iterator[str]:
    """Yield what stands below the title of a card."""
    facts = entry.facts
    if entry.best:
        yield f"▶ {seconds(entry.best.frames)}"
    elif entry.runs:
        yield f"▶ {_counted(len(entry.runs), 'run')}"
    if facts.difficulty is not None:
        yield f"difficulty {facts.difficulty}"
    if facts.gold:
        yield f"{facts.gold} gold"
    if several_authors and entry.level.raw.author:
        yield entry.level.raw.author
    elif not entry.runs:
        yield _counted(facts.entities, "entity", "entities")


def _facts(entry: Entry) -> Iterator[tuple[str, str]]:
    """Yield the facts of a level, name and value."""
    facts, best = entry.facts, entry.best
    if entry.level.raw.author:
        yield "Author", entry.level.raw.author
    if best:
        yield "Solution", f"{seconds(best.frames)} ({best.frames} frames)"
    if facts.difficulty is not None:
        yield "Difficulty", f"{facts.difficulty} of 100"
    yield "Size", f"{facts.columns} × {facts.rows} cells"
    yield from facts.known.items()
    for kind, count in facts.kinds.items():
        yield kind.capitalize(), str(count)


def _counted(count: int, one: str, many: str | None = None) -> str:
    return f"{count:,} {one if count == 1 else many or f'{one}s'}"
