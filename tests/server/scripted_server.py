"""A toolsrv server whose model is scripted: ``scripted_server.py stdio|http``.

Everything else is real. The task chooses the script: one that says SLOW, and not QUICK, makes every
reply take a minute, one that says HOPELESS is given up, one that says LOOKUP calls an API first, one
that says CALL with a function and its arguments calls that first, one that says WRITE with a word
calls the API ``write`` with it. Asked whether an answer is right, the model rejects that of a task
that says DOUBTFUL.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from toolsrv.cli.session import Session
from toolsrv.settings import CommandSettings, load
from toolsrv.solve_options import RUN_OPTIONS
from toolsrv.workbench import Workbench
from toolsrv_runtime.contract.models import (
    Completion,
    Engine,
    OptionScores,
    Prompt,
    Sampling,
    SpecialTokens,
)
from toolsrv_runtime.engine.scripted import ScriptedEngine
from toolsrv_runtime.profiles import Profile
from toolsrv_runtime.stop import Stop


def reply(thought: str, function: str, arguments: dict[str, object]) -> str:
    """Return a reply in ToolLLaMA's format."""
    return f"Thought: {thought}\nAction: {function}\nAction Input: {json.dumps(arguments)}"


ANSWER = reply("I know it", "Finish", {"return_type": "give_answer", "final_answer": "It is 42."})
GIVE_UP = reply("no way", "Finish", {"return_type": "give_up_and_restart"})


class TaskEngine:
    """Chooses a scripted engine by a word of the prompt."""

    name = "scripted"
    context = 8192
    special_tokens = SpecialTokens()

    def __init__(self) -> None:
        self._fast = ScriptedEngine([ANSWER], loop=True)
        self._slow = ScriptedEngine([ANSWER], seconds=60.0, loop=True)
        self._hopeless = ScriptedEngine([GIVE_UP], loop=True)

    def count(self, prompt: Prompt) -> int:
        """Count words."""
        return self._fast.count(prompt)

    def generate(
        self,
        prompt: Prompt,
        *,
        grammar: str,
        max_tokens: int,
        sampling: Sampling = Sampling(),  # noqa: B008 - frozen
        stop: Stop | None = None,
        excluded: Sequence[str] = (),
    ) -> Completion:
        """Reply from the script that the task names."""
        text = "".join(piece.text for piece in prompt)
        slow = "SLOW" in text and "QUICK" not in text
        engine = self._slow if slow else self._fast
        engine = self._hopeless if "HOPELESS" in text else engine
        if "LOOKUP" in text and "\nFunction: " not in text:
            engine = ScriptedEngine([_first_call(text)])
        if (called := re.search(r"CALL (\w+) (\{.*?\})", text)) and "\nFunction: " not in text:
            engine = ScriptedEngine([reply("call it", called[1], json.loads(called[2]))])
        if (wanted := re.search(r"WRITE (\w+)", text)) and "Action: write" not in text:
            engine = ScriptedEngine([reply("note it", "write_for_notes", {"text": wanted[1]})])
        if "is proposed" in text:
            word = "no" if "DOUBTFUL" in text else "yes"
            engine = ScriptedEngine([f"Check: read it\nAccept: {word}"])
        return engine.generate(
            prompt,
            grammar=grammar,
            max_tokens=max_tokens,
            sampling=sampling,
            stop=stop,
            excluded=excluded,
        )

    def score(self, prompt: Prompt, options: Sequence[str]) -> OptionScores:
        """Find all options equally likely."""
        return self._fast.score(prompt, options)

    def close(self) -> None:
        """Do nothing."""


def _first_call(prompt: str) -> str:
    """Return a call of the first function offered, with no arguments."""
    name = re.search(r"\{'name': '(\w+)'", prompt)
    assert name is not None
    return reply("look it up", name[1], {})


def scripted_bench(settings: CommandSettings, run: Mapping[str, Any] | None = None) -> Workbench:
    """Return a workbench with the scripted model."""
    profile = Profile(name="toolllama-2", format="toolllama", context=8192)

    def load_engine() -> tuple[Engine, Profile]:
        return TaskEngine(), profile

    return Workbench(settings, run, load_engine=load_engine)


def command_bench(session: Session, **flags: Any) -> Workbench:
    """Return the workbench of a command, with the scripted model; stands in for the session's."""
    run = {key: flags.pop(key) for key in RUN_OPTIONS if key in flags}
    return scripted_bench(session.load(**flags).settings, run)


def main() -> None:
    """Serve."""
    bench = scripted_bench(load().settings)
    if sys.argv[1] == "http":
        from toolsrv.mcp_server.http import serve_http

        serve_http(bench, host="127.0.0.1", port=0)
    else:
        from toolsrv.mcp_server.stdio import serve_stdio

        serve_stdio(bench)


if __name__ == "__main__":
    main()
