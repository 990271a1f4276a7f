"""A server's reply put together: from a stream of events, or from one JSON document.

Knows the fields of ``chat/completions``, not the network. Everything in it is data of unknown
shape: what is not of the expected type is passed over.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from toolsrv_runtime.engine import textual
from toolsrv_runtime.engine.chat import Answer, Mode


@dataclass(slots=True)
class Gathered:
    """What has come of a reply. ``pieces`` counts the events that held some of it.

    ``error`` is what the server said instead of going on ("" while it goes on).
    """

    text: list[str] = field(default_factory=list)
    names: dict[int, str] = field(default_factory=dict)
    arguments: dict[int, list[str]] = field(default_factory=dict)
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

    def answer(self, mode: Mode) -> Answer:
        """Return the reply as a call; its ``problem`` says why it holds none."""
        text = "".join(self.text)
        if mode == "tools" and self.names:
            first = min(self.names)
            arguments = "".join(self.arguments.get(first, ())) or "{}"
            name = self.names[first]
            thought = text.rpartition("</think>")[2].strip()
            shown = f"{text}\n{name}({arguments})".strip()
            answer = Answer(thought, name, arguments, shown)
        elif mode == "tools":  # some write in their text the call that they should have made
            answer = textual.read(text)
            if answer.problem:
                answer = Answer("", "", "", answer.text, problem="it calls no function")
        else:
            answer = textual.read(text)
        if answer.problem and self.finish == "length":
            answer = Answer("", "", "", answer.text, problem="it broke off at its limit of tokens")
        return self._counted(answer)

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
        self.pieces += bool(content or calls or thinks)

    def _call(self, call: Mapping[str, Any], position: int) -> None:
        index = call.get("index")
        index = index if isinstance(index, int) else position
        function = call.get("function")
        if not isinstance(function, dict):
            return
        if isinstance(name := function.get("name"), str) and name:
            self.names.setdefault(index, name)
        arguments = function.get("arguments")
        if isinstance(arguments, dict):
            arguments = json.dumps(arguments, ensure_ascii=False)
        if isinstance(arguments, str):
            self.arguments.setdefault(index, []).append(arguments)

    def _counted(self, answer: Answer) -> Answer:
        """Add the tokens: the server's count, else the pieces that came, about one token each."""
        details = self.usage.get("prompt_tokens_details")
        cached = details.get("cached_tokens") if isinstance(details, dict) else 0
        return Answer(
            _whole(answer.thought),
            _whole(answer.function),
            _whole(answer.arguments),
            _whole(answer.text),
            answer.problem,
            prompt_tokens=_count(self.usage.get("prompt_tokens")),
            cached=_count(cached),
            generated=_count(self.usage.get("completion_tokens")) or self.pieces,
        )


def _whole(text: str) -> str:
    """Return a text with the halves of characters that came in two pieces put together.

    Servers that cut strings as JavaScript does send them so. A half alone becomes U+FFFD.
    """
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _count(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0
