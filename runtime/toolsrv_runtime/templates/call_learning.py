"""Learn a model's call syntax from what its template renders for probe calls.

Names, keys and values of the probes are improbable words, so each is found again in the rendering;
the text between them is the syntax. Differences between renderings never cut a marker such as
``<tool_call>``. A syntax counts only when it writes every probe as the template does and reads it
back.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from toolsrv_runtime.contract.models import ToolCall
from toolsrv_runtime.templates.call_syntax import CallSyntax, JsonArguments, PairArguments, Slot

_CUT_BEGIN = re.compile(r"[<\[][^<>\[\]\s]*$")
_CUT_END = re.compile(r"^[^<>\[\]\s]*[>\]]")


def same_begin(first: str, second: str) -> str:
    """Return the characters that both begin with."""
    most = min(len(first), len(second))
    differs = (at for at in range(most) if first[at] != second[at])
    return first[: next(differs, most)]


def common_prefix(first: str, second: str) -> str:
    """Return what both begin with, without a marker that the difference cuts."""
    shared = same_begin(first, second)
    whole = shared in {first, second} and shared.endswith((">", "]", "\n", "}"))
    if first == second or whole:
        return shared
    cut = _CUT_BEGIN.search(shared)
    return shared[: cut.start()] if cut else shared


def common_suffix(first: str, second: str) -> str:
    """Return what both end with, without a marker that the difference cuts."""
    shared = same_begin(first[::-1], second[::-1])[::-1]
    if shared in {first, second}:
        return shared
    cut = _CUT_END.search(shared)
    return shared[cut.end() :] if cut else shared


def split_repeated(before: str, between: str, after: str) -> tuple[str, str, str, str, str]:
    """Split the texts around repeated items into begin, open, close, separator and end.

    ``before`` the first item stands begin + open, ``between`` two close + separator + open, and
    ``after`` the last close + end.
    """
    opened = common_suffix(before, between)
    closed = common_prefix(after, between)
    if len(opened) + len(closed) > len(between):
        closed = closed[: max(0, len(between) - len(opened))]
    separator = between[len(closed) : len(between) - len(opened)]
    begin = before[: len(before) - len(opened)]
    return begin, opened, closed, separator, after[len(closed) :]


RenderCalls = Callable[[Sequence[ToolCall]], str | None]
"""Returns the calls of one assistant turn as the template writes them, or None for a refusal."""

PROBE_NAMES = ("quorxalpha", "vexmubeta", "jaxwogamma")
PROBE_IDS = ("Qx7Zw2Kp9", "Vy4Nt8Rm3", "Jb6Hc1Ld5")
PROBE_KEYS = ("zyquorx", "kevixum")
PROBE_VALUES = ("wuqorxi", "hivexmo")
PROBE_TEXT = 'it\'s "a\\b" <c>\n  d é'
"""A text with everything that a syntax may have to escape."""
_DECODER = json.JSONDecoder()


@dataclass(frozen=True, slots=True)
class _Region:
    begin: int
    end: int
    arguments: JsonArguments | PairArguments


def learn_calls(turn: RenderCalls) -> CallSyntax | None:
    """Return the syntax that writes and reads all probes, or None."""
    pair = dict(zip(PROBE_KEYS, PROBE_VALUES, strict=True))
    one = turn([_call(0, pair)])
    if (
        one is None
        or PROBE_NAMES[0] not in one
        or any(text not in one for text in (*PROBE_KEYS, *PROBE_VALUES))
    ):
        return None
    region = _json_region(one, pair) or _pair_region(one, pair, turn)
    if region is None:
        return None
    syntax = _syntax(one, region, turn, pair)
    return syntax if syntax is not None and is_verified(syntax, turn) else None


def _call(which: int, arguments: Mapping[str, Any]) -> ToolCall:
    return ToolCall(PROBE_NAMES[which], dict(arguments), PROBE_IDS[which])


def _json_region(text: str, arguments: Mapping[str, Any]) -> _Region | None:
    key = text.find(f'"{PROBE_KEYS[0]}"')
    other = text.find(f'"{PROBE_KEYS[1]}"')
    begin = text.rfind("{", 0, min(key, other)) if min(key, other) >= 0 else -1
    if begin < 0:
        return None
    try:
        value, end = _DECODER.raw_decode(text, begin)
    except ValueError:
        return None
    if value != arguments:
        return None
    first = f'"{PROBE_KEYS[0]}"' if key < other else f'"{PROBE_KEYS[1]}"'
    second = f'"{PROBE_KEYS[1]}"' if key < other else f'"{PROBE_KEYS[0]}"'
    inner = text[begin:end]
    middle = inner.partition(first)[2].partition('"')[0]
    gap = re.search(r'"([^"]*)' + re.escape(second), inner)
    indent = None
    if gap is not None and "\n" in gap[1]:
        indent = len(gap[1].rpartition("\n")[2])
    separator = ", " if gap is None or indent is not None else gap[1]
    style = JsonArguments(separator, middle, indent=indent, ordered=other < key)
    return _Region(begin, end, style) if style.write(arguments, _same) == inner else None


def _same(value: Any) -> Any:
    return value


def _pair_region(text: str, arguments: Mapping[str, Any], turn: RenderCalls) -> _Region | None:
    empty = turn([_call(0, {})])
    if empty is None or PROBE_NAMES[0] not in empty:
        return None
    head = common_prefix(empty, text)
    after_name = empty.find(PROBE_NAMES[0]) + len(PROBE_NAMES[0])
    if len(head) < after_name:
        return None
    tail = common_suffix(empty[len(head) :], text[len(head) :])
    inner = text[len(head) : len(text) - len(tail)]
    ordered = inner.find(PROBE_KEYS[1]) < inner.find(PROBE_KEYS[0])
    keys = PROBE_KEYS[::-1] if ordered else PROBE_KEYS
    values = [arguments[key] for key in keys]
    cut = _cut(inner, [keys[0], values[0], keys[1], values[1]])
    if cut is None:
        return None
    before, middle, between, middle_2, after = cut
    begin, opened, closed, separator, end = split_repeated(before, between, after)
    if begin or end or middle != middle_2:
        return None
    style = PairArguments(opened, middle, closed, separator, ordered=ordered)
    found = _literals(style, head, tail, turn)
    return None if found is None else _Region(len(head), len(text) - len(tail), found)


def _literals(
    style: PairArguments, head: str, tail: str, turn: RenderCalls
) -> PairArguments | None:
    """Return the style with its quotes and escapes, from probes of one value each."""

    def value(given: Any) -> str | None:
        text = turn([_call(0, {PROBE_KEYS[0]: given})])
        if text is None or not text.startswith(head) or not text.endswith(tail):
            return None
        inner = text[len(head) : len(text) - len(tail)]
        return inner if inner.startswith(style.open + PROBE_KEYS[0]) else None

    number = value(7)
    text = value(PROBE_VALUES[0])
    if number is None or text is None:
        return None
    key = style.open + PROBE_KEYS[0]
    middle, seven, close = number[len(key) :].partition("7")
    if not seven:
        return None
    quote, unquote = style.middle.removeprefix(middle), style.close.removesuffix(close)
    if middle + quote != style.middle or unquote + close != style.close:
        return None
    style = replace(style, middle=middle, close=close, quote=quote, unquote=unquote)
    for escape in ("none", "json", "python") if quote else ("none",):
        tried = replace(style, escape=escape)
        if value(PROBE_TEXT) == tried.write({PROBE_KEYS[0]: PROBE_TEXT}, _same):
            style = tried
            break
    else:
        return None
    words = [
        (value(one) or "").removeprefix(key + style.middle).removesuffix(style.close)
        for one in (True, False, None)
    ]
    style = replace(style, words=(words[0], words[1], words[2]))
    listed = ["wux", 1, True]
    for nested in ("json", "python", "same"):
        tried = replace(style, nested=nested)
        if value(listed) == tried.write({PROBE_KEYS[0]: listed}, _same):
            return tried
    return style


def _cut(text: str, words: Sequence[str]) -> list[str] | None:
    """Return the texts before, between and after ``words``, which stand in this order."""
    parts, at = [], 0
    for word in words:
        found = text.find(word, at)
        if found < 0:
            return None
        parts.append(text[at:found])
        at = found + len(word)
    return [*parts, text[at:]]


def _syntax(
    one: str, region: _Region, turn: RenderCalls, pair: Mapping[str, Any]
) -> CallSyntax | None:
    parts = _parts(one, PROBE_NAMES[0], PROBE_IDS[0], one[region.begin : region.end])
    if parts is None:
        return None
    single = CallSyntax(
        parts=tuple(parts), separator="", arguments=region.arguments, several=False, learnt=True
    )
    two = turn([_call(0, pair), _call(1, pair)])
    if two is None or PROBE_NAMES[1] not in two:
        return single
    shown = one[region.begin : region.end]
    slots = [part for part in parts if isinstance(part, Slot)]
    words = [_word(slot, which, shown) for which in range(2) for slot in slots]
    cut = _cut(two, words)
    if cut is None:
        return single
    count = len(slots)
    before, between, after = cut[0], cut[count], cut[-1]
    begin, opened, closed, separator, end = split_repeated(before, between, after)
    number = _index(before, between)
    if number is not None:
        lead, trail = number
        numbered = between.replace(f"{lead}1{trail}", f"{lead}0{trail}", 1)
        begin, opened, closed, separator, end = split_repeated(before, numbered, after)
        first, _, second = opened.rpartition(f"{lead}0{trail}")
        head: list[str | Slot] = [first + lead, Slot.INDEX, trail + second]
    else:
        head = [opened]
    inner = _inner(parts)
    return CallSyntax(
        begin=begin,
        parts=tuple(part for part in (*head, *inner, closed) if part != ""),
        separator=separator,
        end=end,
        arguments=region.arguments,
        several=True,
        learnt=True,
    )


def _inner(parts: Sequence[str | Slot]) -> list[str | Slot]:
    """Return the parts from the first slot to the last."""
    at = [index for index, part in enumerate(parts) if isinstance(part, Slot)]
    return list(parts[at[0] : at[-1] + 1])


def _word(slot: Slot, which: int, arguments: str) -> str:
    return {Slot.NAME: PROBE_NAMES[which], Slot.ID: PROBE_IDS[which], Slot.ARGUMENTS: arguments}[
        slot
    ]


def _index(before: str, between: str) -> tuple[str, str] | None:
    """Return the texts around a number that counts calls from 0, or None."""
    plain = len(common_suffix(before, between))
    for digit in reversed([found.start() for found in re.finditer(r"(?<!\d)0(?!\d)", before)]):
        counted = f"{before[:digit]}1{before[digit + 1 :]}"
        shared = common_suffix(counted, between)
        if len(shared) > max(plain, len(before) - digit):
            return before[max(0, digit - 4) : digit], before[digit + 1 : digit + 5]
    return None


def _parts(text: str, name: str, call_id: str, arguments: str) -> list[str | Slot] | None:
    marks = [(found.start(), found.end(), Slot.NAME) for found in re.finditer(name, text)]
    marks += [(found.start(), found.end(), Slot.ID) for found in re.finditer(call_id, text)]
    at = text.find(arguments) if arguments else -1
    if at < 0 or not marks:
        return None
    marks.append((at, at + len(arguments), Slot.ARGUMENTS))
    marks.sort(key=lambda one: one[0])
    if any(one[1] > other[0] for one, other in pairwise(marks)):
        return None
    parts: list[str | Slot] = []
    end = 0
    for begin, stop, slot in marks:
        parts += [text[end:begin], slot] if begin > end else [slot]
        end = stop
    return [*parts, text[end:]] if end < len(text) else parts


def probes() -> list[list[ToolCall]]:
    """Return the calls with which a syntax is verified: none to three, values of every type."""
    values: dict[str, Any] = {
        PROBE_KEYS[0]: PROBE_TEXT, "a": 7, "b": True, "c": None, "d": ["wux", 1, {"e": "f"}],
        "g": {"h": "i", "j": [True]}, "k": "", "l": 2.5, "m": False,
    }  # fmt: skip
    kinds = [_call(0, {PROBE_KEYS[0]: value}) for value in values.values()]
    return [
        *([one] for one in kinds),
        [_call(0, values)],
        [_call(0, {})],
        [_call(0, {PROBE_KEYS[0]: PROBE_TEXT}), _call(1, {})],
        [_call(0, {PROBE_KEYS[0]: "x"}), _call(1, {"a": 1, "b": "y"}), _call(2, {"c": [1]})],
    ]


def is_verified(syntax: CallSyntax, turn: RenderCalls) -> bool:
    """Whether the syntax writes every probe as the template does, and reads it back."""
    for calls in probes():
        if len(calls) > 1 and not syntax.several:
            continue
        written = syntax.write(calls)
        if turn(calls) != written or not reads_back(syntax, calls, written):
            return False
    return True


def reads_back(syntax: CallSyntax, calls: Sequence[ToolCall], written: str) -> bool:
    """Whether a syntax reads ``written`` as ``calls`` and nothing else."""
    found = syntax.read(written, {call.name: _schema(call.arguments) for call in calls})
    if found is None or found[1].strip():
        return False
    return [(one.name, one.arguments) for one in found[0]] == [
        (call.name, call.arguments) for call in calls
    ]


def _schema(arguments: Mapping[str, Any]) -> dict[str, Any]:
    strings = {key: {"type": "string"} for key, one in arguments.items() if isinstance(one, str)}
    return {"type": "object", "properties": strings}
