"""A check of APIs as the terminal shows it: one moving line while it runs, a table at its end.

On a terminal the line moves; elsewhere a line is printed now and then. All of it goes to stderr
but the table.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING

from toolsrv.cli.output import note, table
from toolsrv.cli.status_line import StatusLine
from toolsrv.plain import one_line

if TYPE_CHECKING:
    from rich.console import RenderableType

    from toolsrv_registry.health import HealthEntry
    from toolsrv_runtime.check.checker import Result
    from toolsrv_runtime.check.tally import Tally

LINE_EVERY_S = 10.0
SHOWN_REASONS = 8
SHOWN_NAMES = 6
_QUOTED = re.compile(r"'[^']*'")


def duration(seconds: float) -> str:
    """Return a length of time as people say it."""
    whole = round(seconds)
    if whole < 120:
        return f"{whole} s"
    if whole < 7200:
        return f"{round(whole / 60)} min"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def progress_line(tally: Tally) -> str:
    """Return how far a check is, how fast, and how long it still takes."""
    left = tally.left_s
    standings = tally.standings
    return (
        f"{tally.done:,} of {tally.total:,} APIs · {tally.rate:.1f}/s · "
        + (f"{duration(left)} left" if left is not None else "…")
        + f" · {standings['alive']:,} alive, {standings['dead']:,} dead, "
        f"{standings['unknown']:,} unknown"
    )


class CheckView(StatusLine):
    """Shows a running check. ``quiet`` shows nothing."""

    def __init__(self, *, quiet: bool) -> None:
        super().__init__(quiet=quiet)
        self._line = ""
        self._told = time.monotonic()

    def status(self) -> RenderableType:
        """Return how far the check is."""
        from rich.text import Text

        return Text(self._line, no_wrap=True, overflow="ellipsis")

    def show(self, tally: Tally) -> None:
        """Show how far the check is."""
        self._line = progress_line(tally)
        now = time.monotonic()
        if self._live is None and not self._quiet and now - self._told >= LINE_EVERY_S:
            self._told = now
            note(self._line)


def show_result(result: Result, not_checked: Mapping[str, str]) -> None:
    """Print what a check found."""
    tally = result.tally
    rows = [
        (verdict.value, many, _standings(result.entries, verdict.value))
        for verdict, many in tally.verdicts.most_common()
    ]
    if rows:
        table(("verdict", "APIs#", "which means"), rows)
    if tally.calls:
        note(
            f"checked {tally.done:,} APIs with {tally.calls:,} calls in {duration(tally.seconds)}: "
            f"{tally.standings['alive']:,} alive, {tally.standings['dead']:,} dead, "
            f"{tally.standings['unknown']:,} unknown"
        )
    show_reasons(not_checked)


def show_reasons(not_checked: Mapping[str, str]) -> None:
    """Say on stderr why APIs were not checked, the commonest reasons first.

    Reasons that differ only in what they quote are told together.
    """
    kinds: dict[str, Counter[str]] = {}
    for reason in not_checked.values():
        kinds.setdefault(_QUOTED.sub("{}", reason), Counter())[reason] += 1
    ordered = sorted(kinds.items(), key=lambda kind: -kind[1].total())
    for kind, reasons in ordered[:SHOWN_REASONS]:
        commonest = [reason for reason, _ in reasons.most_common(SHOWN_NAMES)]
        names = ", ".join(match[0] for one in commonest if (match := _QUOTED.search(one)))
        more = ", …" if len(reasons) > SHOWN_NAMES else ""
        text = kind.replace("{}", names + more, 1) if names else kind
        note(f"not checked: {one_line(text)} ({reasons.total():,} APIs)")
    if rest := sum(reasons.total() for _, reasons in ordered[SHOWN_REASONS:]):
        note(f"not checked: other reasons ({rest:,} APIs); --json lists them all")


def _standings(entries: tuple[HealthEntry, ...], verdict: str) -> str:
    counts = Counter(one.standing for one in entries if one.verdict == verdict)
    if len(counts) == 1:
        return next(iter(counts))
    return ", ".join(f"{standing}: {many:,}" for standing, many in counts.most_common())
