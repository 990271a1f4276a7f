"""Replies as ToolLLaMA writes them: a call of one function, an answer, giving up."""

from __future__ import annotations

import json

from tests.agents import CAPITAL

from toolsrv_runtime.profiles import Profile

TOOLLLAMA = Profile(name="toolllama-2", format="toolllama", context=8192)
GIVE_UP = 'Thought: no\nAction: Finish\nAction Input: {"return_type": "give_up_and_restart"}'


def call(country: str, thought: str = "look it up") -> str:
    """Return a call for the capital of a country."""
    arguments = json.dumps({"country": country})
    return f"Thought: {thought}\nAction: {CAPITAL}\nAction Input: {arguments}"


def answer(text: str) -> str:
    """Return an answer that ends the task."""
    arguments = json.dumps({"return_type": "give_answer", "final_answer": text})
    return f"Thought: done\nAction: Finish\nAction Input: {arguments}"
