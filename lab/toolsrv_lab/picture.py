"""The README's picture: a real solve in a terminal, as an SVG.

``python -m toolsrv_lab.picture "TASK" docs/solve.svg`` runs the installed ``toolsrv solve`` and
draws what it printed, log and end, without changing a word.
"""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
from pathlib import Path

from rich.console import Console
from rich.text import Text

WIDTH = 160
_STYLES = (
    (re.compile(r"^candidates"), "cyan"),
    (re.compile(r"^\s+thought"), "italic"),
    (re.compile(r"^\s+call"), "bold green"),
    (re.compile(r"^\s+\d{3} \("), "dim"),
    (re.compile(r"^branch"), "yellow"),
    (re.compile(r"^[\d.]+ of "), "dim"),
)


def draw(task: str) -> str:
    """Return an SVG of ``toolsrv solve TASK``.

    Raises:
        subprocess.CalledProcessError: The solve did not end with an answer.
    """
    done = subprocess.run(  # noqa: S603 - our own program, no shell
        [sys.executable, "-m", "toolsrv", "solve", task],
        env={**os.environ, "COLUMNS": str(WIDTH), "NO_COLOR": "1", "PYTHONUTF8": "1"},
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    console = Console(record=True, width=WIDTH, file=io.StringIO())
    console.print(Text.assemble(("$ ", "bold"), (f'toolsrv solve "{task}"', "bold")))
    for line in done.stderr.splitlines():
        style = next((style for pattern, style in _STYLES if pattern.match(line)), "")
        console.print(Text(line, style=style), overflow="ellipsis", no_wrap=True)
    for line in done.stdout.splitlines():
        console.print(Text(line), overflow="fold")
    return console.export_svg(title="toolsrv")


def main() -> None:
    """Draw the first argument's task into the second argument's file."""
    task, target = sys.argv[1:3]
    Path(target).write_text(draw(task), encoding="utf-8")


if __name__ == "__main__":
    main()
