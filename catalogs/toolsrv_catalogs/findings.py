"""What reading a source brought to light, per file: taken, refused, altered.

A reader writes into ``FileFindings`` while it reads; ``FileReport`` is what is told of it. Knows
nothing about formats.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from toolsrv_catalogs.text import NAME_LIMIT, clean, cleaned

What = Literal["file", "API", "parameter", "address", "schema"]
REASON_LIMIT = 300
REFUSALS_LIMIT = 50_000
LINES_LIMIT = 200
"""Refusals and notes that are kept per file; what is left out is counted."""


class Refusal(BaseModel):
    """One thing that was not taken: ``name`` tells which one of the file, ``""`` the file."""

    model_config = ConfigDict(frozen=True)

    what: What
    name: str = ""
    reason: str


class FileReport(BaseModel):
    """What one file came to.

    ``kind`` is what it was read as, ``""`` when it was not read. ``hidden`` counts characters
    that were removed (control, zero-width, bidi), ``cut`` texts that were too long; ``notes``
    tell what else was altered. ``left_out`` counts refusals and notes beyond the first ones,
    ``unselected`` the operations that the rules of the import leave out.
    """

    model_config = ConfigDict(frozen=True)

    path: str
    kind: Literal["", "tool", "schemas", "openapi", "fragment", "mcp"] = ""
    apis: int = 0
    refused: tuple[Refusal, ...] = ()
    notes: tuple[str, ...] = ()
    hidden: int = 0
    cut: int = 0
    left_out: int = 0
    unselected: int = 0


def shown_path(path: str) -> str:
    """Return the path of a file as it is told and kept."""
    return clean(path, 4 * NAME_LIMIT)


@dataclass
class FileFindings:
    """Collects what a reader finds in one file."""

    path: str = ""
    kind: Literal["", "tool", "schemas", "openapi", "fragment", "mcp"] = ""
    apis: int = 0
    refused: list[Refusal] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    hidden: int = 0
    cut: int = 0
    left_out: int = 0
    unselected: int = 0

    def refuse(self, what: What, reason: str, *, name: str = "") -> None:
        """Note that something is not taken, and why."""
        if len(self.refused) >= REFUSALS_LIMIT:
            self.left_out += 1
            return
        self.refused.append(
            Refusal(what=what, name=clean(name, NAME_LIMIT), reason=clean(reason, REASON_LIMIT))
        )

    def note(self, text: str) -> None:
        """Note that something was altered, and how."""
        if len(self.notes) >= LINES_LIMIT:
            self.left_out += 1
            return
        self.notes.append(clean(text, REASON_LIMIT))

    def text(self, value: Any, limit: int) -> str:
        """Return a value as clean text, ``""`` for null, lists and objects; count what went."""
        if value is None or isinstance(value, dict | list):
            return ""
        shown, hidden, cut = cleaned(value if isinstance(value, str) else str(value), limit)
        self.hidden += hidden
        self.cut += cut
        return shown

    def report(self) -> FileReport:
        """Return what there is to tell."""
        return FileReport(
            path=shown_path(self.path),
            kind=self.kind,
            apis=self.apis,
            refused=tuple(self.refused),
            notes=tuple(self.notes),
            hidden=self.hidden,
            cut=self.cut,
            left_out=self.left_out,
            unselected=self.unselected,
        )
