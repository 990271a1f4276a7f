"""Numbers that words put below zero: "minus 6 degrees", "negative 40", "5 below zero". Pure."""

from __future__ import annotations

import re

from toolsrv_registry.api import Parameter

_BEHIND = (
    r"\s?(?:°\s?)?(?:degrees?\s?)?(?:[CFK]\b|celsius|fahrenheit|centigrade)?\s?"
    r"below(?:\s(?:zero|freezing|nought))\b"
)
_BEFORE = r"(?:^|(?<![\d)%])(?<![\d)%]\s))(?:minus|negative)\s"


def below_zero(parameter: Parameter, value: str, part: str, task: str) -> str:
    """Return a number with the sign that the part, or else the task, tells it in words.

    Not what is subtracted: "10 minus 6".
    """
    if parameter.type.upper() != "NUMBER" or not value.replace(".", "", 1).isdecimal():
        return value
    number = rf"{re.escape(value)}(?![\w.,]?\d)"
    below = re.compile(rf"{_BEFORE}{number}|(?<![\w.,-]){number}{_BEHIND}", re.IGNORECASE)
    alone = re.compile(rf"(?<![\w.,]){number}")
    for text in (part, task):
        told = len(below.findall(text))
        if told or alone.search(text):
            return f"-{value}" if told == len(alone.findall(text)) and float(value) else value
    return value
