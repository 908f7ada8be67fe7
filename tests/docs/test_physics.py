"""The physics specification: every citation of it and every link in it leads somewhere."""

import re
from functools import cache
from pathlib import Path

import pytest

from nclone_env.game import KINDS

from .pages import ROOT
from .test_links import anchors

SPECIFICATION = ROOT / "docs" / "physics"
PAGES = sorted(SPECIFICATION.glob("*.md"))
PARTS = {page.name[:2]: page for page in PAGES if page.name[:2].isdigit()}
SOURCES = [path for folder in ("nclone_env", "profiling", "tests") for path in sorted((ROOT / folder).rglob("*.py"))]
SOURCES += [*sorted(ROOT.glob("*.md")), *(set((ROOT / "docs").rglob("*.md")) - set(PAGES))]
SOURCES.remove(Path(__file__))  # it makes citations up
LEAST_CITED = 200  # section numbers; there are more today

HEADING = re.compile(r"^(#{1,4}) (.+)$", re.MULTILINE)
NUMBER = r"\d+(?:\.\d+)?"
RULE = r"[A-Z]\d"
LISTED = r"(?:{0})(?:\s*(?:,\s*and|,|and|to)\s+(?:{0})(?![\w.]*\w))*"
# What a citation is made of, in the order in which a file has it: a part of the specification, sections of it, what is
# said to be in the section just named, and rules without a section.
CITATION = re.compile(
    rf"(?:\b[Pp]hysics\s+(?P<part>\d\d)\b|(?<![\d.\w-])(?P<short>0\d)(?=,\s*(?:(?:section|rule|choice)s?\s|\d+\.\d)))"
    rf"(?:,\s*(?P<bare>\d+\.\d+)\b)?"
    rf"|\b[Ss]ections?\s+(?P<sections>{LISTED.format(NUMBER)})"
    rf"|\bsteps?\s+(?P<steps>{LISTED.format('[0-9]+|[A-Z]')})\b"
    rf"|\bstate\s+(?P<state>\d)\b"
    rf"|\b(?:[Rr]ules?|[Cc]hoices?)\s+(?P<rules>{LISTED.format(RULE)})\b"
)
BETWEEN = re.compile(r"[\s,]*(?:and\s*)?")  # a section and what is said to be in it


@cache
def sections(part: str) -> dict[str, str]:
    """Return the text of each numbered section of a part, its subsections included."""
    text = PARTS[part].read_text()
    found = list(HEADING.finditer(text))
    result = {}
    for i, heading in enumerate(found):
        number = re.match(rf"({NUMBER})\.? ", heading[2])
        if number:
            ends = (later.start() for later in found[i + 1 :] if len(later[1]) <= len(heading[1]))
            result[number[1]] = text[heading.start() : next(ends, len(text))]
    return result


def has_step(text: str, step: str) -> bool:
    item = rf"^\s*{step}\. " if step.isdigit() else rf"^\*\*{step}\."
    return re.search(item, text, flags=re.MULTILINE) is not None


def bad_citations(text: str, name: str = "text") -> tuple[list[str], int]:
    """Return the citations that lead nowhere as ``name:line: what``, and how many section numbers there are."""
    flat = re.sub(r"\n[ \t]*(?:#+[ \t]*)?", lambda gap: " " * len(gap[0]), text)
    bad, count, part, cited, end = [], 0, None, [], 0

    def complain(found: re.Match[str], what: str) -> None:
        bad.append(f"{name}:{text.count(chr(10), 0, found.start()) + 1}: {what}")

    for found in CITATION.finditer(flat):
        attached = bool(cited) and BETWEEN.fullmatch(flat[end : found.start()]) is not None
        if found["part"] or found["short"]:
            part, cited = found["part"] or found["short"], []
            if part not in PARTS:
                complain(found, f"there is no physics {part}")
                part = None
        if found["sections"] or found["bare"]:
            cited = re.findall(NUMBER, found["sections"] or found["bare"])
            count += len(cited)
            if part is None:
                complain(found, f"section {', '.join(cited)} of what? No part is named above")
                cited = []
            for number in cited:
                if number not in sections(part):
                    complain(found, f"physics {part} has no section {number}")
            cited = [number for number in cited if part and number in sections(part)]
        elif found["steps"] and (attached or (cited and not found["steps"][0].isdigit())):
            for step in re.findall(r"\d+|[A-Z]", found["steps"]):
                if not has_step(sections(part)[cited[-1]], step):
                    complain(found, f"physics {part}, section {cited[-1]} has no step {step}")
            continue  # more may be said of the same section
        elif found["state"] and attached:
            if f"State {found['state']} " not in sections(part)[cited[-1]]:
                complain(found, f"physics {part}, section {cited[-1]} says nothing of state {found['state']}")
        elif found["rules"]:
            for rule in re.findall(RULE, found["rules"]):
                where = [sections(part)[cited[-1]]] if attached else list(sections(part).values()) if part else []
                if not any(re.search(rf"\b{rule}\b", place) for place in where):
                    complain(
                        found, f"there is no rule {rule} in physics {part}, {'that' if attached else 'any'} section"
                    )
        end = found.end()
    return bad, count


def test_citations_lead_to_sections():
    bad, total = [], 0
    for path in SOURCES:
        faults, count = bad_citations(path.read_text(), str(path.relative_to(ROOT)))
        bad += faults
        total += count
    assert not bad, "\n" + "\n".join(bad)
    assert total >= LEAST_CITED


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("A thwump (physics 02, section 6.99).", "text:1: physics 02 has no section 6.99"),
        ("(physics 02, sections 6.5 to 6.99)", "physics 02 has no section 6.99"),
        (
            "(physics 01, section 9.1;\n    # physics 02, sections 4.4, 5 and 77)",
            "text:2: physics 02 has no section 77",
        ),
        ("(physics 01, section 9.1; 02, 6.99)", "physics 02 has no section 6.99"),
        ("see section 3.5", "No part is named above"),
        ("physics 01\n\n(section 3.99)", "text:3: physics 01 has no section 3.99"),
        ("physics 04, section 1", "there is no physics 04"),
        ("physics 01, section 8.2, step 77", "section 8.2 has no step 77"),
        ("physics 02, section 6.20: (step A), (steps B and C), (steps E and F)", None),
        ("physics 02, section 6.20: (step A), (steps B and G)", "section 6.20 has no step G"),
        ("physics 02, section 6.17, steps 1 and 8", "section 6.17 has no step 8"),
        ("physics 01, section 11.3, state 7", "says nothing of state 7"),
        ("physics 03, section 14, rule S9", "there is no rule S9"),
        ("physics 03, section 14, rule R1", "there is no rule R1"),
        ("physics 03, section 17, choices D1, D2 and D9", "there is no rule D9"),
        ("physics 03 says so (rule Z1)", "there is no rule Z1"),
        ("physics 03, section 8.2 and rules R2 and R3; section 14, rule S1; section\n # 17, choice C1", None),
        ("physics 01, section 8.2, step 9, sections 3.1, 3.5, 3.9 and 9.2. 7 more", None),
    ],
)
def test_made_up_citations_are_found(text, fault):
    bad, _ = bad_citations(text)
    assert (fault is None) == (bad == [])
    assert fault is None or fault in bad[0]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_headings_are_told_apart(page):
    text = page.read_text()
    assert len(anchors(text)) == len(HEADING.findall(text))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_references_between_the_parts(page):
    text = page.read_text()
    own = page.name[:2]
    for part, number in re.findall(rf"[Pp]art (\d) §({NUMBER})", text):
        assert number in sections(f"0{part}"), f"part {part} §{number}"
    if own in PARTS:
        inside = rf"(?<![Pp]art \d )§({NUMBER})" if own == "01" else rf"\b[Ss]ections? ({NUMBER})"
        numbers = re.findall(inside, text) + re.findall(r"\((\d\.\d\d?)\)", text)
        assert len(numbers) > 20
        assert not [number for number in numbers if number not in sections(own)]


@pytest.mark.parametrize("number", range(len(KINDS)), ids=[kind.name for kind in KINDS])
def test_every_kind_has_its_evidence(number):
    name = KINDS[number].name.replace("_", " ")
    rows = re.findall(rf"^\| {name} \({number}\).*\|$", (SPECIFICATION / "README.md").read_text(), flags=re.MULTILINE)
    assert len(rows) == 1


def test_the_code_named_is_there():
    for page in PAGES:
        for name in re.findall(r"`((?:\w+/)*\w+\.py)`", page.read_text()):
            package, entities = ROOT / "nclone_env", ROOT / "nclone_env" / "sim" / "entities"
            assert any((folder / name).is_file() for folder in (ROOT, package, entities)), (page.name, name)
