"""What one value of a call is read from, and the port of the rules that read it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from toolsrv_registry.api import Api, Parameter


class Wish(NamedTuple):
    """The words of a task that ask for a call, what leads up to them, and the whole task."""

    part: str
    context: str = ""
    task: str = ""


Rule = Callable[[Parameter, Api, Wish], str]
"""Returns what is stated for a parameter of a function in so many words, "" for nothing."""
