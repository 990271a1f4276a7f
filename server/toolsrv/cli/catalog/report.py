"""Progress bar and report of an import, as text and as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from toolsrv.cli.catalog.changes import hidden_note, show_difference
from toolsrv.cli.output import console, note, pluralize, table
from toolsrv.plain import one_line, plain

if TYPE_CHECKING:
    from toolsrv_catalogs.importer import ImportResult
    from toolsrv_registry.storage.entries import Changes, Origin

LINES = 40
"""Refused things and altered files that are shown; all are in the JSON."""
DIFFERENCES = 20


@dataclass(frozen=True)
class IndexResult:
    """How the building of the index went: seconds, and the fault if there was one.

    ``in_background``: a process of its own builds it, and this one does not wait.
    """

    seconds: float
    fault: str
    in_background: bool = False


@dataclass(frozen=True)
class Imported:
    """What an import came to; ``differences`` are diffs of changed APIs by id.

    ``aspects`` name what of them changed.
    ``kept`` counts by file the APIs that stay although the file is refused now; ``hidden_behind``
    those that no search finds, by the catalog that has their ids too.
    """

    reading: ImportResult
    source: str
    origin: Origin | None
    changes: Changes
    kept: Mapping[str, int]
    differences: Mapping[str, Sequence[str]]
    aspects: Mapping[str, Sequence[str]]
    waiting: int
    hidden_behind: Mapping[str, int]
    dry_run: bool
    accepted: bool
    seconds: float

    def document(self, state: str, index: IndexResult | None) -> dict[str, Any]:
        """Return all of it as one JSON document."""
        files = self.reading.files
        catalog = self.reading.catalog
        return {
            "catalog": catalog.name,
            "source": self.source,
            "origin": self.origin.model_dump(mode="json") if self.origin else None,
            "dry_run": self.dry_run,
            "tools": len(catalog.tools),
            "apis": len(catalog.apis),
            "categories": self.categories(),
            "added": list(self.changes.added),
            "removed": list(self.changes.removed),
            "unchanged": self.changes.unchanged,
            "kept": dict(self.kept),
            "changed": [
                {
                    "id": i,
                    "what": list(self.aspects.get(i, ())),
                    "diff": list(self.differences.get(i, ())),
                }
                for i in self.changes.changed
            ],
            "accepted": self.accepted,
            "waiting": self.waiting,
            "hidden_behind": dict(self.hidden_behind),
            "read": self.totals(),
            "refused": self.refused(),
            "files": [one.model_dump(mode="json") for one in files],
            "seconds": round(self.seconds, 3),
            "index": {
                "state": state,
                "seconds": round(index.seconds, 3) if index else 0.0,
                "error": index.fault if index else "",
                "background": index is not None and index.in_background,
            },
        }

    def categories(self) -> int:
        """Return the number of categories that have an API."""
        return len({api.category for api in self.reading.catalog.apis})

    def totals(self) -> dict[str, Any]:
        """Return counts over all files."""
        files = self.reading.files
        kinds = Counter(one.kind or "refused" for one in files)
        return {
            "files": len(files),
            "kinds": dict(sorted(kinds.items())),
            "passed_over": self.reading.passed,
            "complete": self.reading.complete,
            "hidden_characters": sum(one.hidden for one in files),
            "cut_texts": sum(one.cut for one in files),
            "notes": sum(len(one.notes) for one in files),
            "not_selected": sum(one.unselected for one in files),
        }

    def refused(self) -> list[dict[str, str]]:
        """Return everything that was refused, with the file it stands in."""
        return [
            {"path": one.path, "what": refusal.what, "name": refusal.name, "reason": refusal.reason}
            for one in self.reading.files
            for refusal in one.refused
        ]


def show(
    imported: Imported, state: str, index: IndexResult | None, *, changes: bool = True
) -> None:
    """Print the report on stdout, and on stderr what to do next; ``changes`` with the diffs."""
    totals = imported.totals()
    _refusals(imported)
    _alterations(imported)
    if changes:
        show_changes(imported)
    catalog = imported.reading.catalog
    rows = [
        ("catalog", catalog.name),
        ("tools", len(catalog.tools)),
        ("APIs", len(catalog.apis)),
        ("categories", imported.categories()),
        ("added", len(imported.changes.added)),
        ("removed", len(imported.changes.removed)),
        ("changed", len(imported.changes.changed)),
        ("unchanged", imported.changes.unchanged),
        ("kept of refused files", sum(imported.kept.values())),
        ("hidden behind another catalog's", sum(imported.hidden_behind.values())),
        ("files", ", ".join(f"{count} {kind}" for kind, count in totals["kinds"].items())),
        ("refused", len(imported.refused())),
        *([("left out by rules", left_out)] if (left_out := totals["not_selected"]) else []),
        ("hidden characters removed", totals["hidden_characters"]),
        ("texts cut", totals["cut_texts"]),
        ("seconds", f"{imported.seconds:.1f}"),
    ]
    table(("dry run" if imported.dry_run else "import", "value"), rows)
    _next(imported, state, index)


def show_changes(imported: Imported) -> None:
    """Print the first diffs, and the ids that were added and removed, where a catalog was there."""
    changes = imported.changes
    for api_id, lines in list(imported.differences.items())[:DIFFERENCES]:
        what = ", ".join(imported.aspects.get(api_id, ()))
        console().print(plain(f"changed: {api_id} ({what})"), soft_wrap=True)
        show_difference(lines)
    if len(changes.changed) > DIFFERENCES:
        note(f"note: {len(changes.changed) - DIFFERENCES} more changed; --json lists all")
    if changes.unchanged or changes.changed or changes.removed:  # there was one of that name
        _named("added", changes.added)
        _named("removed", changes.removed)


def _named(what: str, api_ids: Sequence[str]) -> None:
    if api_ids:
        more = f" and {len(api_ids) - DIFFERENCES} more" if len(api_ids) > DIFFERENCES else ""
        out = console()
        out.print(f"{what}: {plain(', '.join(api_ids[:DIFFERENCES]))}{more}", soft_wrap=True)


def _refusals(imported: Imported) -> None:
    refused = imported.refused()
    if refused:
        rows = [
            (one["path"], one["what"], one_line(one["name"], 80), one["reason"])
            for one in refused[:LINES]
        ]
        table(("file", "refused", "name", "because"), rows)
    if len(refused) > LINES:
        note(f"note: {len(refused) - LINES} more were refused; --json lists all")


def _alterations(imported: Imported) -> None:
    altered = [one for one in imported.reading.files if one.hidden or one.cut or one.notes]
    if altered:
        rows = [
            (one.path, one.hidden or "", one.cut or "", "; ".join(one.notes[:3]))
            for one in altered[:LINES]
        ]
        table(("file", "hidden characters#", "texts cut#", "altered"), rows)
    if len(altered) > LINES:
        note(f"note: {len(altered) - LINES} more files were altered; --json lists all")


def _next(imported: Imported, state: str, index: IndexResult | None) -> None:
    name = imported.reading.catalog.name
    if not imported.reading.complete:
        note("note: the source was not read to its end")
    if imported.kept:
        files = [f"{one_line(path)} ({count})" for path, count in imported.kept.items()]
        more = f" and {len(files) - DIFFERENCES} more" if len(files) > DIFFERENCES else ""
        note(f"note: APIs of refused files stay: {', '.join(files[:DIFFERENCES])}{more}")
    if imported.waiting:
        note(
            f"note: {pluralize(imported.waiting, 'changed text waits', 'changed texts wait')}; what"
            f" was accepted is served until: toolsrv catalog accept {name}"
        )
    if imported.hidden_behind:
        note(f"note: {hidden_note(name, imported.hidden_behind)}")
    if imported.dry_run:
        note("note: nothing was changed (--dry-run)")
    elif index is not None and index.fault:
        note(f"note: the index could not be built, words are searched: {index.fault}")
    elif index is not None and index.in_background:
        note("note: found by words at once; vectors follow, see: toolsrv index status")
    elif state != "ready":
        note("note: found by words so far; for searches by meaning: toolsrv index build")
