"""Grammars in which a small model copies: words of the task, values of its words or of answers.

``substring_chunks`` (llguidance) accepts any run of the chunks of a text and nothing else, so what
is written was said. Pure.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from toolsrv_runtime.planner import layout
from toolsrv_runtime.templates.grammar_rules import (
    MOST_CHUNKS,
    lark_choice,
    lark_literal,
    text_chunks,
)
from toolsrv_runtime.values import facts

# Of a thought the words are whole, whatever is inside them.
_WHOLE = re.compile(r"[^\W_]+(?:[.,:'’_-][^\W_]+)*|\s+|.", re.DOTALL)
_TAIL = re.compile(r" use (?:#(\d)|nothing)$")


def need(task: str, *, offers: int, served: bool) -> str:
    """Return the grammar of how a thought begins.

    Words of the task with the function for them, or the end: the answer where something is
    ``served``, giving up where nothing is.
    """
    tails = [f"{layout.USE}{number}" for number in range(1, offers + 1)] + [layout.NOTHING]
    end = layout.DONE if served else layout.ACTION
    # One terminal each: a blank belongs to the words and to what follows them.
    return (
        f"start: THOUGHT | {lark_literal(end)}\nTHOUGHT: WORDS TAIL\n"
        f"TAIL: {lark_choice(tails)}\n{_words([_WHOLE.findall(task)])}"
    )


def needed(said: str) -> str:
    """Return the words of a reply of ``need``, empty for the end."""
    match = _TAIL.search(said)
    return said[: match.start()] if match else ""


def value(sources: Sequence[str]) -> str:
    """Return the grammar of a value: a run of words of one of the sources, and a quote."""
    told = [text_chunks(facts.plain(source)) for source in sources]
    return f'start: VALUE\nVALUE: WORDS "\\""\n{_words(told)}'


def free() -> str:
    """Return the grammar of a value in any words."""
    return f'start: /[^"\\\\\\n]{{1,{facts.VALUE_LIMIT}}}"/\n'


def one_of(options: Sequence[str]) -> str:
    """Return the grammar of a value that is one of ``options``, and a quote."""
    return f'start: value "\\""\nvalue: {lark_choice(options)}\n'


def original(said: str, text: str) -> str:
    """Return what stands in ``text`` where a model read ``said``: with the signs it cannot write."""
    parts = [re.escape(part) for part in said.split()]
    match = re.search(r"[\s\"\\]+".join(parts), text) if parts else None
    return match[0] if match else said


def _words(sources: Sequence[Sequence[str]]) -> str:
    """Return the terminal of a run of the pieces of one of the sources."""
    rules = []
    for at, pieces in enumerate(sources):
        regex = {"substring_chunks": pieces[:MOST_CHUNKS]}
        rules.append(f"W{at}: %regex {json.dumps(regex, ensure_ascii=False)}")
    names = " | ".join(f"W{at}" for at in range(len(sources)))
    return f"WORDS: {names}\n" + "\n".join(rules) + "\n"
