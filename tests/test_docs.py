"""The documents for those who build on tilewright are true to the tree: what they name exists."""

from __future__ import annotations

import configparser
import re
from pathlib import Path

DECISIONS = "tutorials/design/decisions"
MOST_WORDS = 3500  # of the page on the architecture, which is read in fifteen minutes
PATH = re.compile(r"`(\.?\w[\w./-]*)`")
FILE = re.compile(r"[\w-]+\.(?:py|c|h|cfg|toml|md)")  # a file of the root
LINK = re.compile(r"\]\((?!https?:)([^)#\s]*)(?:#([^)\s]*))?\)")


def pages(root: Path) -> list[Path]:
    """The pages that are held against the tree."""
    design = root / "tutorials" / "design"
    return [
        design / "architecture.md",
        design / "refusals.md",
        root / "CONTRIBUTING.md",
        *sorted((root / "tutorials" / "reference").glob("*.md")),
        *sorted((root / DECISIONS).glob("*.md")),
    ]


def records(root: Path) -> list[Path]:
    """The decisions, without their index."""
    return sorted((root / DECISIONS).glob("[0-9]*.md"))


def named_paths(text: str, root: Path) -> set[str]:
    """What stands in backquotes and is a path: it begins with a folder of the root, or is a file's
    name.
    """
    folders = {path.name for path in root.iterdir() if path.is_dir()}
    return {
        name
        for name in PATH.findall(text)
        if ("/" in name and name.partition("/")[0] in folders) or FILE.fullmatch(name)
    }


def anchors(text: str) -> set[str]:
    """The anchors of a page's headings."""
    heads = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", head.lower()).replace(" ", "-") for head in heads}


def test_every_path_that_a_page_names_exists(root: Path) -> None:
    missing = [
        f"{page.relative_to(root)}: {name}"
        for page in pages(root)
        for name in sorted(named_paths(page.read_text(encoding="utf-8"), root))
        if not (root / name).exists()
    ]
    assert not missing, "\n".join(missing)


def test_every_relative_link_leads_somewhere(root: Path) -> None:
    broken = []
    for page in pages(root):
        for link, anchor in LINK.findall(page.read_text(encoding="utf-8")):
            target = page.parent / link if link else page
            found = target.exists() and (
                not anchor or anchor in anchors(target.read_text(encoding="utf-8"))
            )
            if not found:
                broken.append(f"{page.relative_to(root)}: {link}{anchor and '#' + anchor}")
    assert not broken, "\n".join(broken)


def test_the_table_of_packages_names_the_rooms_that_there_are(root: Path) -> None:
    config = configparser.ConfigParser()
    config.read(root / "setup.cfg", encoding="utf-8")
    rooms: dict[str, set[str]] = {}
    for name in config["options"]["packages"].split():
        _, package, room, *_ = (*name.split("."), "", "")
        rooms.setdefault(package, set()).add(room)
    page = (root / "tutorials" / "design" / "architecture.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `(\w+)` \| (.*) \|$", page, re.MULTILINE))
    lacking = {
        package: sorted(missing)
        for package, found in rooms.items()
        if package and (missing := found - {""} - set(re.findall(r"`(\w+)`", rows[package])))
    }
    assert not lacking


def test_the_architecture_is_read_in_fifteen_minutes(root: Path) -> None:
    page = root / "tutorials" / "design" / "architecture.md"
    assert len(page.read_text(encoding="utf-8").split()) < MOST_WORDS


def test_each_decision_has_its_number_and_a_date(root: Path) -> None:
    for number, page in enumerate(records(root), 1):
        head, _, rest = page.read_text(encoding="utf-8").partition("\n\n")
        assert page.name.startswith(f"{number:04}-"), page.name
        assert head.startswith(f"# {number:04}. "), page.name
        assert re.match(r"Date: 20\d\d-\d\d-\d\d", rest), page.name


def test_the_index_lists_each_decision_once(root: Path) -> None:
    index = (root / DECISIONS / "README.md").read_text(encoding="utf-8")
    links = re.findall(r"^\| \[\d{4}\]\(([^)]+)\)", index, re.MULTILINE)
    assert sorted(links) == [page.name for page in records(root)]


def test_paths_are_found_and_code_is_none(root: Path) -> None:
    text = "`tir/no_such.py` `sch.split(i, (2, 3))` `a/b` `.ci/faults.toml` `none.py` `tir`"
    assert named_paths(text, root) == {"tir/no_such.py", ".ci/faults.toml", "none.py"}
