"""A server's reply put together: from a stream of events, or from one JSON document.

Knows the fields of ``chat/completions``, not the network. Everything in it is data of unknown
shape: what is not of the expected type is passed over.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from toolsrv_runtime.contract.chat import ChatReply, ChatRequest, Finish
from toolsrv_runtime.models import textual
from toolsrv_runtime.models.openai.body import Mode
from toolsrv_runtime.models.replies import RawCall, native


@dataclass(slots=True)
class _Pieces:
    """What has come of one structured call; servers repeat names and arguments in many ways."""

    id: str = ""
    names: list[str] = field(default_factory=list)
    arguments: list[str] = field(default_factory=list)

    def complete(self) -> bool:
        """Whether the arguments are a whole JSON object."""
        return _is_object("".join(self.arguments))

    def name(self, offered: Collection[str]) -> str:
        """Return the name: in pieces, or sent whole with each piece of the arguments."""
        whole = "".join(self.names)
        for candidate in (whole, *self.names[:1], *self.names[-1:]):
            if candidate in offered:
                return candidate
        return self.names[0] if len(set(self.names)) == 1 else whole

    def texts(self) -> tuple[str, ...]:
        """Return what the arguments may be, the likeliest first.

        Pieces to be joined; the whole in the last of growing texts; pieces after a placeholder.
        """
        parts = [one for one in self.arguments if one]
        return ("".join(parts), *parts[-1:], "".join(parts[1:])) if len(parts) > 1 else tuple(parts)


@dataclass(slots=True)
class Gathered:
    """What has come of a reply. ``pieces`` counts the events that held some of it.

    ``error`` is what the server said instead of going on ("" while it goes on).
    """

    text: list[str] = field(default_factory=list)
    reasoning: list[str] = field(default_factory=list)
    calls: dict[int, list[_Pieces]] = field(default_factory=dict)
    usage: dict[str, Any] = field(default_factory=dict)
    pieces: int = 0
    finish: str = ""
    error: str = ""

    def event(self, data: str) -> bool:
        """Take one event's data (or a whole document); False when it is no JSON object."""
        try:
            value = json.loads(data)
        except (ValueError, RecursionError):
            return False
        if not isinstance(value, dict):
            return False
        if error := value.get("error"):  # some send it as null where there is none
            self.error = str(error.get("message", error) if isinstance(error, dict) else error)
        if isinstance(usage := value.get("usage"), dict):
            self.usage = usage
        choices = value.get("choices")
        if isinstance(choices, list) and choices and isinstance(choices[0], dict):
            self._choice(choices[0])
        return True

    def reply(self, request: ChatRequest, mode: Mode) -> ChatReply:
        """Return the reply to ``request`` as it was written in ``mode``."""
        text, thought = "".join(self.text), "".join(self.reasoning)
        finish: Finish = "length" if self.finish == "length" else "complete"
        offered = {one.name for one in request.tools}
        calls = [
            RawCall(one.name(offered), one.texts(), one.id)
            for _, several in sorted(self.calls.items())
            for one in several
            if one.names
        ]
        if calls or mode == "tools":
            reply = native(request, text, calls, reasoning=thought, finish=finish)
        else:
            reply = textual.read(request, text, reasoning=thought, finish=finish)
        return self._counted(reply)

    def _choice(self, choice: Mapping[str, Any]) -> None:
        said = choice.get("delta") or choice.get("message")
        if isinstance(finish := choice.get("finish_reason"), str):
            self.finish = finish
        if not isinstance(said, dict):
            return
        content, calls = said.get("content"), said.get("tool_calls")
        if isinstance(content, str) and content:
            self.text.append(content)
        for position, call in enumerate(calls if isinstance(calls, list) else ()):
            if isinstance(call, dict):
                self._call(call, position)
        thinks = said.get("reasoning_content") or said.get("reasoning")
        if isinstance(thinks, str):
            self.reasoning.append(thinks)
        self.pieces += bool(content or calls or thinks)

    def _call(self, call: Mapping[str, Any], position: int) -> None:
        index = call.get("index")
        index = index if isinstance(index, int) else position
        function = call.get("function")
        if not isinstance(function, dict):
            return
        name, handle = function.get("name"), call.get("id")
        name = name if isinstance(name, str) else ""
        several = self.calls.setdefault(index, [_Pieces()])
        if isinstance(handle, str) and handle:
            # Some number all calls 0 and tell them apart by ids; others send a new id each time.
            if name and several[-1].id not in ("", handle) and several[-1].complete():
                several.append(_Pieces())
            several[-1].id = several[-1].id or handle
        if name:
            several[-1].names.append(name)
        arguments = function.get("arguments")
        if isinstance(arguments, dict):
            arguments = json.dumps(arguments, ensure_ascii=False)
        if isinstance(arguments, str):
            several[-1].arguments.append(arguments)

    def _counted(self, reply: ChatReply) -> ChatReply:
        """Add the tokens: the server's count, else the pieces that came, about one token each."""
        details = self.usage.get("prompt_tokens_details")
        cached = details.get("cached_tokens") if isinstance(details, dict) else 0
        return replace(
            reply,
            prompt_tokens=_count(self.usage.get("prompt_tokens")),
            cached=_count(cached),
            generated=_count(self.usage.get("completion_tokens")) or self.pieces,
        )


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


def _count(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0
