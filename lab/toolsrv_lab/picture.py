"""The README's moving picture: a real solve in a terminal, as an SVG that plays by itself.

``python -m toolsrv_lab.picture "TASK" docs/solve.svg`` runs the installed ``toolsrv solve`` and
draws what it printed: every line as it stood and at the time at which it came. The SVG needs no
script, font or network. It follows the viewer's light or dark colours, and shows the end at once
where motion is not wanted or not known.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO
from xml.sax.saxutils import escape

COLUMNS = 112
_CHARACTER, _LINE, _EDGE, _BAR = 7.8, 19, 18, 34
"""Pixels: the width of a character, the height of a line, the margin, the window's bar."""
_TYPED_S, _HOLD_S = 1.6, 6.0
"""How long the command is typed, and how long the end stands before it begins again."""
_STYLES = (
    (re.compile(r"^\s*(candidates|building)"), "found"),
    (re.compile(r"^\s+thought"), "thought"),
    (re.compile(r"^\s+call"), "call"),
    (re.compile(r"^\s+\d{3} \("), "result"),
    (re.compile(r"^branch"), "branch"),
    (re.compile(r"^([\d.]+ of |the whole search)"), "dim"),
)
_LEFT_OUT = re.compile(r"^(building the index|the whole search)")
_CSS = """
  text { font: 13px ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace;
    white-space: pre; fill: #24292f; }
  .window { fill: #ffffff; stroke: #d0d7de; }
  .bar { fill: #f6f8fa; }
  .command, .answer { font-weight: 600; }
  .found { fill: #1b6f8a; }
  .thought { font-style: italic; fill: #57606a; }
  .call { fill: #116329; font-weight: 600; }
  .result { fill: #57606a; }
  .branch { fill: #9a6700; }
  .dim, .title { fill: #6e7781; }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3; }
    .window { fill: #0d1117; stroke: #30363d; }
    .bar { fill: #161b22; }
    .found { fill: #79c0ff; }
    .thought, .result { fill: #9da7b3; }
    .call { fill: #7ee787; }
    .branch { fill: #d29922; }
    .dim, .title { fill: #8b949e; }
  }
  @media (prefers-reduced-motion: reduce) { * { animation: none !important; } }
"""


@dataclass(frozen=True)
class Line:
    """One printed line: the seconds after the start at which it came, its text, its style."""

    at: float
    text: str
    style: str


def record(task: str) -> list[Line]:
    """Run ``toolsrv solve TASK`` and return its lines, those of the search before the answer.

    Raises:
        subprocess.CalledProcessError: The solve did not end with an answer.
    """
    command = [sys.executable, "-m", "toolsrv", "solve", task]
    # Tables of rich are made for the width; the answer's own lines are folded here.
    environment = {
        **os.environ, "COLUMNS": str(COLUMNS), "NO_COLOR": "1", "PYTHONUTF8": "1",
        "PYTHONUNBUFFERED": "1",
    }  # fmt: skip
    began = time.monotonic()
    with subprocess.Popen(  # noqa: S603 - our own program, no shell
        command,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    ) as process:
        if process.stdout is None or process.stderr is None:
            raise RuntimeError("the pipes of the process are not open")
        answer: list[tuple[float, str]] = []
        reader = threading.Thread(target=_read, args=(process.stdout, began, answer))
        reader.start()
        search: list[tuple[float, str]] = []
        _read(process.stderr, began, search)
        reader.join()
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    lines = [Line(at, text, _style(text)) for at, text in search if not _LEFT_OUT.match(text)]
    return lines + _answer(answer)


def _read(stream: IO[str], began: float, into: list[tuple[float, str]]) -> None:
    into += [(time.monotonic() - began, line.rstrip()) for line in stream]


def _style(text: str) -> str:
    return next((style for pattern, style in _STYLES if pattern.match(text)), "")


def _answer(printed: Sequence[tuple[float, str]]) -> list[Line]:
    """Return what stands before the table of evidence, which is too wide for a picture."""
    lines: list[Line] = []
    for at, text in printed:
        if text.startswith("Evidence"):
            break
        lines += [Line(at, one, "answer") for one in textwrap.wrap(text, COLUMNS)]
    return lines


def draw(task: str, lines: Sequence[Line]) -> str:
    """Return the SVG of a recorded solve."""
    command = textwrap.wrap(f'$ toolsrv solve "{task}"', COLUMNS, subsequent_indent="    ")
    end = max(line.at for line in lines) + _TYPED_S
    rows = [*(Line(0, text, "command") for text in command), *lines]
    width = round(COLUMNS * _CHARACTER) + 2 * _EDGE
    height = _BAR + len(rows) * _LINE + 2 * _EDGE
    moves = "".join(_moves(rows, len(command), end + _HOLD_S))
    texts = "".join(
        f'<text id="r{n}" class="{row.style}" x="{_EDGE}" y="{_BAR + _EDGE + 13 + n * _LINE}">'
        f"{escape(_fit(row.text))}</text>\n"
        for n, row in enumerate(rows)
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}" role="img" aria-label="toolsrv solves a task">\n'
        f"<title>toolsrv solves a task in a terminal, {end - _TYPED_S:.1f} seconds</title>\n"
        f"<style>{_CSS}{moves}</style>\n"
        f'<rect class="window" x=".5" y=".5" width="{width - 1}" height="{height - 1}" rx="9"/>\n'
        f'<path class="bar" d="M1 {_BAR}V9.5a8.5 8.5 0 0 1 8.5-8.5H{width - 9.5}a8.5 8.5 0 0 1 '
        f'8.5 8.5V{_BAR}z"/>\n'
        f'<g>{_buttons()}</g>\n<text class="title" x="{width / 2}" y="22" text-anchor="middle">'
        f"toolsrv</text>\n{texts}</svg>\n"
    )


def _fit(text: str) -> str:
    return text if len(text) <= COLUMNS else text[: COLUMNS - 1] + "…"


def _buttons() -> str:
    colours = ("#ff5f57", "#febc2e", "#28c840")
    return "".join(
        f'<circle cx="{20 + 18 * n}" cy="17" r="5.5" fill="{one}"/>'
        for n, one in enumerate(colours)
    )


def _moves(rows: Sequence[Line], typed: int, total: float) -> Iterator[str]:
    """Yield the animation of each row: the command is typed, the others come at their time."""
    for n, row in enumerate(rows):
        if n < typed:
            begin = 100 * _TYPED_S * n / typed / total
            done = 100 * _TYPED_S * (n + 1) / typed / total
            first, last = "clip-path: inset(0 100% 0 0)", "clip-path: inset(0 0 0 0)"
            yield (
                f"\n  @keyframes k{n} {{ 0%, {begin:.2f}% {{ {first} }} "
                f"{done:.2f}%, 100% {{ {last} }} }}"
            )
        else:
            begin = 100 * (row.at + _TYPED_S) / total
            yield (
                f"\n  @keyframes k{n} {{ 0%, {begin:.2f}% {{ opacity: 0 }} "
                f"{begin + 0.01:.2f}%, 100% {{ opacity: 1 }} }}"
            )
        yield f"\n  #r{n} {{ animation: k{n} {total:.2f}s linear infinite; }}"


def main() -> None:
    """Draw the first argument's task into the second argument's file."""
    task, target = sys.argv[1:3]
    Path(target).write_text(draw(task, record(task)), encoding="utf-8")


if __name__ == "__main__":
    main()
