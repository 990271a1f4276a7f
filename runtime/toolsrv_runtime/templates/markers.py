"""Markers around calls and reasoning: where they are, what stands between them, what is a mention.

A marker inside a code fence, inside back quotes or in the middle of a sentence is a mention, not a
call. Markers are those of the families' templates and their known variants.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import Final

from toolsrv_runtime.templates.written_calls import (
    MOST_CALLS,
    ReadCalls,
    Reader,
    ReaderOptions,
    UnreadableError,
    Written,
    delimited,
    fenced_value,
    function_tag,
    invoke_tag,
    json_calls,
    json_or_python,
    named_json,
    tool_call,
)

_MOST_MENTIONS = 32
_BAR = r"[|｜]"
_GAP = r"(?:▁|\\?_| )"
_JUNK = r"[\s}\]),;]*"
"""What may stand before a closer: brackets too many, and separators."""


@dataclass(frozen=True, slots=True)
class CallGroup:
    """Calls that stand together. ``closed``: their closing marker is there."""

    calls: tuple[Written, ...]
    source: str
    closed: bool = True


@dataclass(frozen=True, slots=True)
class MarkedReply:
    """A reply as texts and calls in order. ``error``: why a call in the texts was not read."""

    pieces: list[str | CallGroup]
    dialect: str
    repairs: tuple[str, ...] = ()
    error: str = ""
    reasoning: str = ""


@dataclass(frozen=True, slots=True)
class _Dialect:
    """A syntax with markers. ``certain``: its opener is in no prose, so a failure is an error.

    ``offered``: it counts only with names of tools of the request. ``prose``: it is text that a
    sentence may quote.
    """

    name: str
    opener: str
    closer: str
    reader: Reader
    certain: bool = True
    offered: bool = False
    prose: bool = False
    closers: re.Pattern[str] = field(init=False)

    def __post_init__(self) -> None:
        closer = rf"(?:{_JUNK}(?:{self.closer}))+|" if self.closer else ""
        object.__setattr__(self, "closers", re.compile(rf"{closer}[\s}}\]]*\Z"))


def _deepseek_marker(*words: str) -> str:
    """Return the pattern of a marker with any of the spellings that distilled models write."""
    return rf"<{_BAR}{_GAP.join(words)}{_BAR}>"


_CALL_BEGIN = _deepseek_marker("tool", "call", "begin")
_SEPARATOR = _deepseek_marker("tool", "sep")
_SECTION = (
    rf"(?:{_deepseek_marker('tool', 'calls', 'begin')}|{_deepseek_marker('tool', 'calls')}"
    r"|<\|tool_calls_section_begin\|>)"
)
_SECTION_NAME = re.compile(
    rf"\s*(?:function\s*{_SEPARATOR}\s*)?([^\s{{<`]{{1,256}})\s*"
    rf"(?:{_SEPARATOR}|<\|tool_call_argument_begin\|>)?\s*"
)
_MISTRAL = re.compile(
    r"\s*([^\s\[\]{}]{1,256})\s*(?:\[CALL_ID\]\s*([^\s\[{]{1,64})\s*)?(?:\[ARGS\])?\s*(?=\{)"
)
_HEADER_NAME = re.compile(r"([\w.-]{1,256})\s*(?:<\|constrain\|>)?\s*(?:json)?\s*(?=\{)")


def _after_name(name: re.Pattern[str]) -> Reader:
    """Return a reader of a name (group 1), a given id (group 2) and a JSON object."""

    def read(text: str, at: int, reading: ReaderOptions) -> ReadCalls:
        head = name.match(text, at)
        if head is None:
            raise UnreadableError("expected the name of a tool", started=False)
        value, end, repairs = fenced_value(text, head.end(), reading)
        given = head[2] if name.groups > 1 else None
        return ReadCalls((Written(_unglued(head[1], reading), value, id=given),), end, repairs)

    return read


def _unglued(name: str, reading: ReaderOptions) -> str:
    """Return a name without the word ``json`` that a model wrote on to it."""
    bare = name.removesuffix("json")
    return bare if bare != name and not reading.offered(name) and reading.offered(bare) else name


def _mistral(text: str, at: int, reading: ReaderOptions) -> ReadCalls:
    if _MISTRAL.match(text, at):
        return _after_name(_MISTRAL)(text, at, reading)
    return json_calls(text, at, reading)


def _python_tag(text: str, at: int, reading: ReaderOptions) -> ReadCalls:
    """Read ``NAME.call(…)`` or JSON; anything else is code for an interpreter."""
    body = json_or_python(text, at, reading)
    calls = [replace(call, name=call.name.removesuffix(".call")) for call in body.calls]
    return replace(body, calls=tuple(calls))


def _function_calls(text: str, at: int, reading: ReaderOptions) -> ReadCalls:
    if text[at : at + 200].lstrip().startswith("<invoke"):
        return invoke_tag(text, at, reading)
    return json_or_python(text, at, reading)


_DIALECTS: Final = (
    _Dialect(
        # In ASCII spelling the two have the same marker for a single call.
        "deepseek or kimi",
        rf"(?:{_SECTION}\s*)?{_CALL_BEGIN}|{_SECTION}",
        rf"{_deepseek_marker('tool', 'call', 'end')}|{_deepseek_marker('tool', 'calls', 'end')}"
        r"|<\|tool_calls_section_end\|>",
        _after_name(_SECTION_NAME),
    ),
    _Dialect("lfm2", r"<\|tool_call_start\|>", r"<\|tool_call_end\|>", json_or_python),
    _Dialect("mistral", r"\[TOOL_CALLS\]", r"\[/TOOL_CALLS\]|</s>", _mistral),
    _Dialect(
        "functiongemma",
        r"<start_function_call>",
        r"<end_function_call>|<start_function_response>",
        delimited("<escape>"),
    ),
    _Dialect("gemma4", r"<\|tool_call>", r"<tool_call\|>|<\|tool_response>", delimited('<|"|>')),
    _Dialect("command-r", r"<\|START_ACTION\|>", r"<\|END_ACTION\|>", json_calls),
    _Dialect("python tag", r"<\|python_tag\|>", r"<\|eom_id\|>|<\|eot_id\|>", _python_tag),
    _Dialect("granite", r"<\|tool_call\|>", r"<\|/tool_call\|>", json_or_python),
    _Dialect("apertus", r"<\|tools_prefix\|>", r"<\|tools_suffix\|>", json_calls),
    _Dialect("nemotron", r"<TOOLCALL>", r"</TOOLCALL>", json_calls, prose=True),
    _Dialect("lm studio", r"\[TOOL_REQUEST\]", r"\[END_TOOL_REQUEST\]", json_calls, prose=True),
    _Dialect("functools", r"^functools(?=\[)", "", json_calls, certain=False, prose=True),
    _Dialect(
        "function_calls",
        r"<function_calls>|(?<=</invoke>)\s*(?=<invoke\s)",
        r"</function_calls>",
        _function_calls,
        prose=True,
    ),
    _Dialect(
        "tool_call",
        r"<tool_call>(?:\s*<tool_call>)*",
        r"</tool_call>|<tool_call>(?=\s*\Z)",
        tool_call,
        prose=True,
    ),
    _Dialect(
        "harmony without markers",
        r"(?:assistant)?commentary to=functions\.",
        "",
        _after_name(_HEADER_NAME),
        certain=False,
        offered=True,
    ),
    _Dialect(
        "function tag",
        r"(?=<function=)",
        r"</tool_call>",
        function_tag,
        certain=False,
        offered=True,
        prose=True,
    ),
    _Dialect(
        "tools tag", r"<tools>", r"</tools>", json_calls, certain=False, offered=True, prose=True
    ),
    _Dialect(">>>", r"^>>>", "", named_json, certain=False, offered=True, prose=True),
)
_OPENERS: Final = re.compile(
    "|".join(f"(?P<d{index}>{one.opener})" for index, one in enumerate(_DIALECTS)), re.MULTILINE
)
_ENDS: Final = (
    *("<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<|end_of_text|>", "<|endoftext|>", "</s>"),
    *("<end_of_turn>", "<eos>", "<|end|>", "<|END_OF_TURN_TOKEN|>", "<｜end▁of▁sentence｜>"),
    *("<|assistant_end|>", "<|observation|>", "<|user|>", "<|end_of_role|>"),
)
_THOUGHTS: Final = (
    ("<think>", "</think>"),
    ("[THINK]", "[/THINK]"),
    ("<|START_THINKING|>", "<|END_THINKING|>"),
    ("<|channel>thought", "<channel|>"),
    ("<|inner_prefix|>", "<|inner_suffix|>"),
)
_HARMONY = re.compile(r"<\|(start|channel|message|constrain|end|call|return)\|>")
_CHANNEL = re.compile(r"<\|channel\|>\s*([a-z]+)")
_RECIPIENT = re.compile(r"\bto=([^\s<]{1,256})")
_FENCE_LINE = re.compile(r"^[ ]{0,3}```", re.MULTILINE)


def read_marked(text: str, reading: ReaderOptions) -> MarkedReply | None:
    """Return the reply's texts and calls by the first marker that opens a call, None without one."""
    pieces: list[str | CallGroup] = []
    repairs: dict[str, None] = {}
    dialect: _Dialect | None = None
    error = ""
    last = at = mentions = 0
    while mentions < _MOST_MENTIONS and (opener := _OPENERS.search(text, at)) is not None:
        kind = _DIALECTS[int((opener.lastgroup or "d0")[1:])]
        start, at = opener.start(), max(opener.end(), opener.start() + 1)
        mentions += 1
        if (dialect is not None and kind is not dialect) or _quoted(text, last, start):
            continue
        try:
            body = _read(kind, text, opener.end(), reading)
        except UnreadableError as unreadable:
            if not (kind.certain and unreadable.started):
                continue
            dialect, error = kind, str(unreadable)
            break
        if kind.offered and not all(reading.offered(call.name) for call in body.calls):
            continue
        closer = kind.closers.match(text, body.end)
        end = closer.end() if closer else body.end
        if kind.prose and _in_sentence(text, last, start, end):
            at = end
            continue
        repairs |= dict.fromkeys(body.repairs)
        if closer and closer[0].lstrip()[:1] in ("}", "]", ")") and closer[0].strip():
            repairs["brackets after the value"] = None
        closed = not kind.closer or bool(closer and closer[0].strip())
        pieces += [text[last:start], CallGroup(body.calls, text[start:end], closed=closed)]
        dialect, last, at, mentions = kind, end, end, 0
        if sum(isinstance(piece, CallGroup) for piece in pieces) >= MOST_CALLS:
            error = f"more than {MOST_CALLS} calls"
            break
    called = any(piece.calls for piece in pieces if isinstance(piece, CallGroup))
    if dialect is None or not (called or error):
        return None
    return MarkedReply([*pieces, text[last:]], dialect.name, tuple(repairs), error)


def _read(kind: _Dialect, text: str, at: int, reading: ReaderOptions) -> ReadCalls:
    """Read a call; where that fails and may be repaired, what ends at the closer is closed."""
    try:
        return kind.reader(text, at, replace(reading, closing=False))
    except UnreadableError as unreadable:
        if not (reading.closing and unreadable.started):
            raise
        closer = re.search(kind.closer, text[at:]) if kind.closer else None
        inner = text[: at + closer.start()] if closer else text
        try:
            return kind.reader(inner, at, reading)
        except UnreadableError:
            raise unreadable from None


def _quoted(text: str, start: int, at: int) -> bool:
    """Whether ``at`` is in a code fence or in back quotes that were opened after ``start``."""
    if "`" not in text[start:at]:
        return False
    fences = len(_FENCE_LINE.findall(text, start, at))
    line = text.rfind("\n", start, at) + 1
    return fences % 2 == 1 or text.count("`", max(line, start), at) % 2 == 1


def _in_sentence(text: str, before: int, start: int, end: int) -> bool:
    """Whether text stands on both sides of a call on its lines."""
    line = max(text.rfind("\n", before, start) + 1, before)
    stop = text.find("\n", end)
    rest = text[end : stop if stop >= 0 else len(text)]
    return bool(text[line:start].strip() and rest.strip()) and not _OPENERS.match(rest.lstrip())


def split_reasoning(raw: str) -> tuple[str, str]:
    """Return the reasoning and the rest of a reply.

    A closing tag alone closes what began in the prompt; an opening one alone leaves no rest.
    """
    thoughts: list[str] = []
    text = raw
    while True:
        stripped = text.lstrip()
        pair = next((one for one in _THOUGHTS if stripped.startswith(one[0])), None)
        if pair is None:
            break
        thought, closer, text = stripped[len(pair[0]) :].partition(pair[1])
        thoughts.append(thought)
        if not closer:
            return "\n".join(thoughts), ""
    for _, closer in _THOUGHTS if not thoughts else ():
        at = text.find(closer)
        if at < 0:
            continue
        before = text[:at].strip(" ")
        # A closing tag inside an argument closes nothing.
        call = before.startswith(("{", "[")) or _OPENERS.search(before) is not None
        if not call or before.endswith("\n"):
            return text[:at], text[at + len(closer) :]
    return "\n".join(thoughts), text


def without_ends(text: str) -> str:
    """Return a reply without the markers that end a turn."""
    while True:
        stripped = text.rstrip()
        end = next((one for one in _ENDS if stripped.endswith(one)), None)
        if end is None:
            return text
        text = stripped[: -len(end)]


def read_harmony(raw: str, reading: ReaderOptions) -> MarkedReply | None:
    """Return a reply in gpt-oss's messages, None where it has none.

    The recipient may stand in the role's or in the channel's part of the header, with or without
    ``<|constrain|>``.
    """
    if "<|message|>" not in raw or not ("<|channel|>" in raw or "to=" in raw):
        return None
    parts = _Harmony(reading)
    header_at, body_at = 0, -1
    for token in _HARMONY.finditer(raw):
        if body_at < 0:
            if token[1] == "message":
                body_at = token.end()
            continue
        if token[1] in ("message", "constrain"):
            continue
        after = token.end() if token[1] in ("end", "call", "return") else token.start()
        parts.message(raw, header_at, body_at, token.start(), after)
        header_at, body_at = after, -1
    if body_at >= 0:
        parts.message(raw, header_at, body_at, len(raw), len(raw))
    elif raw[header_at:].strip():
        parts.pieces.append(raw[header_at:])
    return MarkedReply(parts.pieces, "harmony", (), parts.error, "\n".join(parts.reasoning))


@dataclass(slots=True)
class _Harmony:
    reading: ReaderOptions
    pieces: list[str | CallGroup] = field(default_factory=list)
    reasoning: list[str] = field(default_factory=list)
    error: str = ""

    def message(self, raw: str, header_at: int, body_at: int, end: int, after: int) -> None:
        """Add the message whose header, body and end are at these offsets."""
        header, body, source = raw[header_at:body_at], raw[body_at:end], raw[header_at:after]
        channel, recipient = _CHANNEL.search(header), _RECIPIENT.search(header)
        if recipient is None:
            thinks = channel is not None and channel[1] == "analysis"
            (self.reasoning if thinks else self.pieces).append(body)
            return
        name = _unglued(recipient[1], self.reading)
        try:
            value, stop, _ = fenced_value(body, 0, self.reading)
        except UnreadableError as unreadable:
            self.error = self.error or str(unreadable)
            self.pieces.append(source)
            return
        self.pieces += [CallGroup((Written(name, value),), source), body[stop:]]
