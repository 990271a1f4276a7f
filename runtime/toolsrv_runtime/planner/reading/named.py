"""What a task calls by its name: "the yacht's name, Xanthippe", "the password Minka2016". Pure."""

from __future__ import annotations

import re

from toolsrv_registry.api import Api, Parameter
from toolsrv_runtime.planner.reading.wish import Wish
from toolsrv_runtime.values import kinds
from toolsrv_runtime.values.facts import words

_NAME = r"(?-i:[A-Z])[\w’'-]*(?: (?-i:[A-Z])[\w’'-]*){0,3}"
_WHOLE = re.compile(_NAME)
_CALLED = re.compile(
    rf"\bname(?:, | is |: |, which is )(?P<name>{_NAME})(?=[,.?!;]|$| in\b| and\b)", re.IGNORECASE
)
_POINTS = re.compile(r"\b(?:his|her|their) (?:first |own )?name\b", re.IGNORECASE)
_PERSON = re.compile(
    r"(?<=[a-z,] )[A-Z][a-z]+(?=[,.]|['’]s\b| (?:born|who|is|was|turns|wants|needs|asks|asked|wonders|loves)\b)"
)
_MIXED = r"(?<!\S)(?=\S*[A-Za-z])(?=\S*\d)(?!\S*://)[^\s,;\"']{6,64}(?<![.?!:)])"
_PASSWORD = re.compile(
    rf"(?P<before>{_MIXED}) (?:is |as )?(?:the|my|our|his|her|their|a) password\b"
    rf"|\bpassword:?(?: is)? (?P<behind>{_MIXED})",
    re.IGNORECASE,
)


def told(parameter: Parameter, api: Api, wish: Wish) -> str:
    """Return the name that a part tells or points at for a text, the one password of a task; or ""."""
    if words(parameter.name).split()[-1:] == ["password"]:
        told = {one["before"] or one["behind"] for one in _PASSWORD.finditer(wish.task)}
        return told.pop() if len(told) == 1 and wish.task.lower().count("password") == 1 else ""
    if kinds.value_kind(parameter, api) != "text" or len(api.required) != 1:
        return ""
    if called := _CALLED.search(wish.part):
        return called["name"]
    if not _POINTS.search(wish.part):
        return ""
    before = wish.task[: max(0, wish.task.find(wish.part)) + len(wish.part)]
    people = {one[0] for one in _PERSON.finditer(before)}
    return people.pop() if len(people) == 1 else ""


def whole(parameter: Parameter, api: Api, value: str, task: str) -> str:
    """Return a name with the words of it that stand before: "Verband" of "Verband Deutscher Ruderer"."""
    if kinds.value_kind(parameter, api) != "text" or not _WHOLE.fullmatch(value):
        return value
    at = task.find(value)
    run = re.search(r"(?<=[a-z],\s)(?:[A-Z][\w’'-]*\s)+$", task[:at]) if at > 0 else None
    return f"{run[0]}{value}" if run and " " in value else value
