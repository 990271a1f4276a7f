"""A scripted chat model for demos and tests: replies from a list, a function or a file.

It records the requests.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from toolsrv_runtime.agent.prompts import NO_FUNCTION_FITS
from toolsrv_runtime.contract.models import ChatReply, ChatRequest, ToolCall
from toolsrv_runtime.engine.scripted import read_script
from toolsrv_runtime.errors import ModelError
from toolsrv_runtime.models.conversation import validate_reply
from toolsrv_runtime.profiles import Profile
from toolsrv_runtime.stop import Stop

ScriptedReply = ChatReply | ToolCall | Sequence[ToolCall] | str
"""A reply, or short for one: a call, several calls, a text."""

_STEP_S = 0.005


class ScriptedChat:
    """A ``ChatModel`` that says ``script``: replies in order, or what a function makes of a request.

    A reply is judged as a server's is: calls get ids, and an unusable one its ``problem``, unless
    the script has one. ``seconds`` is how long a reply takes, ended early by Stop; with ``loop``
    the last one is repeated for ever. With ``repeat_answer`` a text is said again to a request
    without tools: an agent writes its answer in a conversation of its own. ``requests`` holds what
    was asked. Tokens are words.
    """

    name = "scripted"
    syntax = "scripted"

    def __init__(
        self,
        script: Sequence[ScriptedReply] | Callable[[ChatRequest], ScriptedReply],
        *,
        seconds: float = 0.0,
        loop: bool = False,
        repeat_answer: bool = False,
        context: int | None = None,
    ) -> None:
        self.context = context
        self.requests: list[ChatRequest] = []
        self._script = script
        self._seconds = seconds
        self._loop = loop
        self._repeat_answer = repeat_answer
        self._last: ScriptedReply = ()
        self._next = 0

    @classmethod
    def from_file(cls, path: Path) -> ScriptedChat:
        """Return the model that a script file describes (``engine.scripted``).

        A ``thought`` stands beside its call; Finish with an answer is a reply of that text, and
        Finish without one a call of ``no_function_fits``.

        Raises:
            NotFoundError: there is no such file.
            DataError: it is no script; says where.
        """
        script = read_script(path)
        said: list[ScriptedReply] = []
        for one in script.replies:
            if isinstance(one, str):
                said.append(one)
            elif one.function == "Finish" and "final_answer" in one.arguments:
                said.append(str(one.arguments["final_answer"]))
            elif one.function == "Finish":
                said.append(ToolCall(NO_FUNCTION_FITS, {"reason": one.thought}))
            else:
                call = ToolCall(one.function, dict(one.arguments))
                said.append(ChatReply(text=one.thought, calls=(call,)))
        return cls(said, seconds=script.seconds, loop=script.loop, repeat_answer=True)

    def count(self, request: ChatRequest) -> int:
        """Return the number of words."""
        return sum(len(one.text.split()) for one in request.messages)

    def reply(self, request: ChatRequest, *, stop: Stop) -> ChatReply | None:
        """Return the next reply.

        Raises:
            ModelError: the script is over.
        """
        self.requests.append(request)
        end = time.monotonic() + self._seconds
        while time.monotonic() < end:
            if stop.is_set():
                return None
            time.sleep(_STEP_S)
        reply = validate_reply(request, _reply(self._take(request)))
        words = len(reply.text.split()) + len(reply.calls)
        return replace(reply, prompt_tokens=self.count(request), generated=words)

    def close(self) -> None:
        """Do nothing."""

    def _take(self, request: ChatRequest) -> ScriptedReply:
        if callable(self._script):
            return self._script(request)
        again = self._repeat_answer and not request.tools and request.expected.schema is None
        if again and isinstance(self._last, str):
            return self._last
        if self._next >= len(self._script):
            raise ModelError("the script is over", hint="give the scripted model more replies")
        said = self._last = self._script[self._next]
        if not (self._loop and self._next == len(self._script) - 1):
            self._next += 1
        return said


def load_script(path: Path) -> tuple[ScriptedChat, Profile]:
    """Return the model that says what a script file holds, and the profile it is run with.

    Raises as ``ScriptedChat.from_file`` does.
    """
    return ScriptedChat.from_file(path), Profile(name="scripted", format="remote", context=8192)


def _reply(said: ScriptedReply) -> ChatReply:
    if isinstance(said, ChatReply):
        return said
    if isinstance(said, str):
        return ChatReply(text=said, raw=said)
    return ChatReply(calls=(said,) if isinstance(said, ToolCall) else tuple(said))
