"""A reply of ToolLLaMA in its parts: thought, action, action input (spec: formats 4.3).

``sliced`` reads it exactly as the reference does; ``read`` agrees with it on well-formed text and
makes the nearest sense of the rest. Knows no functions and no prompts.
"""

from __future__ import annotations

import json
from typing import NamedTuple

THOUGHT = "Thought: "
ACTION = "\nAction: "
INPUT = "\nAction Input: "


class Spoken(NamedTuple):
    """The parts of a reply, as text."""

    thought: str
    action: str
    action_input: str


def sliced(text: str) -> Spoken:
    """Return what the reference cuts out of a reply, first occurrences, without repair.

    A marker that is missing counts as found one character before the text, so its slices are
    odd parts of the text; nothing is stripped, and nothing is refused.
    """
    thought = text[_behind(text, THOUGHT) : text.find(ACTION)]
    action = text[_behind(text, ACTION[1:]) : text.find(INPUT)]
    return Spoken(thought, action, text[_behind(text, INPUT[1:]) :])


def read(text: str) -> Spoken | None:
    """Return the parts of a reply, or None where it names no function.

    The markers count at the beginning of a line only, in any case and with or without a blank
    behind them. The input is the JSON value it begins with: what a model makes up behind it is
    dropped.
    """
    parts: dict[str, list[str]] = {}
    part = "thought"
    for line in text.replace("\r\n", "\n").split("\n"):
        for name in ("thought", "action", "action input"):
            head, colon, rest = line.partition(":")
            if colon and head.strip().lower() == name and name not in parts:
                part, line = name, rest  # noqa: PLW2901 - the marker is not part of the text
                break
        parts.setdefault(part, []).append(line)
    action = "\n".join(parts.get("action", ())).strip()
    if not action:
        return None
    thought = "\n".join(parts.get("thought", ())).strip()
    return Spoken(thought, action, _value("\n".join(parts.get("action input", ())).strip()))


def _behind(text: str, marker: str) -> int:
    return text.find(marker) + len(marker)


def _value(text: str) -> str:
    """Return the JSON value that a text begins with; the whole text where there is none."""
    try:
        _, end = json.JSONDecoder(strict=False).raw_decode(text)
    except (ValueError, RecursionError):
        return text
    return text[:end]
