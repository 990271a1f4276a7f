"""Grammars of replies in three parts: a thought, an action, its input.

In llguidance's Lark dialect; knows no prompts.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from toolsrv_registry.functions import Function
from toolsrv_runtime.formats import grounded
from toolsrv_runtime.formats.base import FINISH
from toolsrv_runtime.formats.lark import literal
from toolsrv_runtime.formats.react_parser import ACTION, INPUT, THOUGHT

FREE = "start: /(?s:.+)/\n"
"""Any text of at least one character."""

_TIGHT = {"whitespace_flexible": False}
_SPACED = {**_TIGHT, "item_separator": ", ", "key_separator": ": "}


def react_grammar(
    functions: Sequence[Function],
    sources: Sequence[str] | None = None,
    *,
    spaced: bool = True,
    silent: bool = True,
) -> str:
    """Return the grammar of a reply: a thought, then an offered function or Finish.

    With ``sources`` the texts among the arguments are held to what stands there. ``spaced``: JSON
    has blanks after commas and colons; ``silent``: the thought may be empty.
    """
    spelling = _SPACED if spaced else _TIGHT
    rules = [] if sources is None else [grounded.words_rule("WORDS", sources)]
    calls = []
    for index, function in enumerate(functions):
        schema = function.argument_schema()
        if sources is None:
            rules.append(_json_rule(f"a{index}", schema, spelling))
        else:
            rules.append(grounded.object_rules(f"a{index}", schema, "WORDS"))
        calls.append(f"{literal(function.name + INPUT)} a{index}")
    rules += [_json_rule("answer", _ANSWER, spelling), _json_rule("quit", _QUIT, spelling)]
    calls.append(f"{literal(FINISH + INPUT)} (answer | quit)")
    thought = f"/[^\\n]{{{0 if silent else 1},400}}/"
    start = f"start: {literal(THOUGHT)} {thought} {literal(ACTION)} ({' | '.join(calls)})"
    return "\n".join([start, *rules]) + "\n"


def _json_rule(name: str, schema: dict[str, Any], spelling: dict[str, Any]) -> str:
    spelled = {**schema, "x-guidance": spelling}
    return f"{name}: %json {json.dumps(spelled, ensure_ascii=False)}"


def _finish(**properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


_ANSWER = _finish(
    return_type={"const": "give_answer"},
    final_answer={"type": "string", "minLength": 1, "maxLength": 2000},
)
_QUIT = _finish(return_type={"const": "give_up_and_restart"})
