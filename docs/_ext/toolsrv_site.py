"""Sphinx extension: pages of the site that live elsewhere in the repository, or in the code.

A page may hold two kinds of comments, which GitHub does not show:

- ``<!-- include: ../server/README.md -->`` is replaced by that file.
- ``<!-- generated: settings -->`` is replaced by Markdown made from the code (``reference``).

Relative links are resolved from the file in which they were written. One to a file that is a page
leads to that page; one to any other file of the repository becomes its path as text, since the
site does not hold the sources. A link to nothing is left alone, and Sphinx warns about it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import reference

DOCS = Path(__file__).parents[1].resolve()
ROOT = DOCS.parent
_INCLUDE = re.compile(r"^<!-- include: (\S+) -->$", re.MULTILINE)
_GENERATED = re.compile(r"^<!-- generated: (\w+) -->$", re.MULTILINE)
_LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\((?!\w+:|#)([^()\s#]+)(#[^()\s]*)?\)")


def pages() -> dict[Path, Path]:
    """Return the page (a path in ``docs``) that shows each file of the repository."""
    shown = {}
    for page in sorted(DOCS.rglob("*.md")):
        shown[page] = page
        for target in _INCLUDE.findall(page.read_text(encoding="utf-8")):
            shown[(page.parent / target).resolve()] = page
    return shown


def page_text(page: Path, shown: Mapping[Path, Path]) -> str:
    """Return the Markdown of a page with everything in it that it includes or generates.

    Raises:
        KeyError: The page asks for a generated part that there is none of.
        OSError: It includes a file that is not there.
    """
    text = relink(page.read_text(encoding="utf-8"), page, page, shown)

    def included(match: re.Match[str]) -> str:
        origin = (page.parent / match[1]).resolve()
        return relink(origin.read_text(encoding="utf-8"), origin, page, shown)

    text = _INCLUDE.sub(included, text)
    return _GENERATED.sub(lambda match: reference.PARTS[match[1]](), text)


def relink(text: str, origin: Path, page: Path, shown: Mapping[Path, Path]) -> str:
    """Return ``text``, written in the file ``origin``, with its links as ``page`` needs them."""

    def replaced(match: re.Match[str]) -> str:
        picture, words, target, anchor = match[1], match[2], match[3], match[4] or ""
        file = (origin.parent / target).resolve()
        if file in shown:
            return f"[{words}]({_relative(shown[file], page)}{anchor})"
        if file.is_relative_to(DOCS) or not file.exists():
            return f"{picture}[{words}]({_relative(file, page)}{anchor})"
        path = f"`{file.relative_to(ROOT).as_posix()}`"
        return path if words.strip("`") in (target, path.strip("`")) else f"{words} ({path})"

    return _LINK.sub(replaced, text)


def _relative(target: Path, page: Path) -> str:
    return Path(os.path.relpath(target, page.parent)).as_posix()


def setup(app: Any) -> dict[str, Any]:
    """Register with Sphinx."""
    shown = pages()

    def read(_: Any, name: str, content: list[str]) -> None:
        content[0] = page_text(DOCS / f"{name}.md", shown)

    app.connect("source-read", read)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
