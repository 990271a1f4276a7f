"""Check a built site without a network: ``check_site.py FOLDER``.

Every link, picture and script of a page that stays on the site must lead to a file of it, and to an
anchor that is there; nothing may be loaded from another host. Links to other hosts are not followed.
Prints what is wrong, a line each, and ends with 1 if something is.
"""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADED = {("script", "src"), ("img", "src"), ("link", "href"), ("iframe", "src")}


class Page(HTMLParser):
    """One page: its anchors, where it links to, and what it loads."""

    def __init__(self, path: Path) -> None:
        """Read the page."""
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note one element."""
        values = {name: value for name, value in attrs if value is not None}
        self.anchors.update(values[one] for one in ("id", "name") if one in values)
        for name in ("href", "src"):
            if name in values:
                loaded = (tag, name) in LOADED and values.get("rel") != "canonical"
                (self.loads if loaded else self.links).append(values[name])


def faults(folder: Path) -> list[str]:
    """Return what is wrong with a site, one line for each fault."""
    pages = {path: Page(path) for path in sorted(folder.rglob("*.html"))}
    found = [] if pages else [f"{folder}: no pages"]
    for path, page in pages.items():
        here = path.relative_to(folder)
        for target in (*page.links, *page.loads):
            parts = urlsplit(target)
            if parts.scheme or parts.netloc:
                if target in page.loads and parts.scheme != "data":
                    found.append(f"{here}: loads {target}")
                continue
            file = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if file.is_dir():
                file /= "index.html"
            if not file.exists():
                found.append(f"{here}: {target} leads nowhere")
            elif parts.fragment and file in pages:
                anchor = unquote(parts.fragment)
                if anchor not in pages[file].anchors and anchor != "top":
                    found.append(f"{here}: {target} has no such anchor")
    return found


def main() -> None:
    """Check the folder that the first argument names."""
    found = faults(Path(sys.argv[1]).resolve())
    for one in found:
        sys.stdout.write(one + "\n")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
