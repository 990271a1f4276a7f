"""What a part of a task says of a call's values in so many words, and where they come from. Pure."""

from __future__ import annotations

import json
import re

from toolsrv_registry.api import Api, Parameter
from toolsrv_runtime.formats import bases, conversions, days, directions, grounding, patterns, spans
from toolsrv_runtime.formats.labels import labelled
from toolsrv_runtime.formats.matched import holds
from toolsrv_runtime.formats.measures import in_its_unit, whole_unit
from toolsrv_runtime.formats.mentions import spelled
from toolsrv_runtime.formats.scene import Scene, about
from toolsrv_runtime.formats.shared import shared

ANSWERED = 2.5
"""Nats that words of an answer are behind as likely ones of the task."""

STATED = 12.0
"""The same where the part names as many values of the kind as the call takes."""

_LABELLED = frozenset({"", "number", "name"})
_NAMED = frozenset({"currency", "language", "date", "zone", "formula"})
_STOP = re.compile(r"[.?!;]\s")
_POSSESSIVE = re.compile(r"(?:its|their|his|her)\b", re.IGNORECASE)


class Stated:
    """The rules for one part of a scene's task."""

    def __init__(self, part: str, scene: Scene) -> None:
        self._part = part
        self._task = scene.task
        self._path = scene.path
        self._context = scene.sources(part).context

    def meant(self, parameter: Parameter, value: str) -> str:
        """Return a value with its direction, in the unit of its parameter, and a unit whole."""
        task = self._task
        value = directions.turned(parameter, value, self._part, task)
        return whole_unit(parameter, in_its_unit(parameter, value, self._part, task), task)

    def value(self, parameter: Parameter, api: Api) -> str:
        """Return what the part or the task states for a parameter in so many words, "" for none."""
        kind = patterns.kind(parameter, api)
        told = shared(parameter.name, self._task) if kind in {"number", "year", ""} else ""
        if told and (not parameter.enum or told in parameter.enum):
            return told
        if kind in _LABELLED and not parameter.enum:
            label = labelled(parameter, self._part)
            others = (one for one in api.parameters if one is not parameter)
            if label and all(labelled(one, self._part) != label for one in others):
                return label
        return (
            directions.told(parameter, api, self._part, self._task)
            or bases.told(parameter, api, self._part, self._task)
            or conversions.told(parameter, api, self._part)
            or self._relative(kind)
        )

    def away(self, said: str, parameter: Parameter, kind: str, api: Api) -> float:
        """Return what an answer's words lose where nothing in the part points back to an answer.

        "Its acronym, a slug, and the name in capitals": the slug is not the acronym's. More where
        the part names a value of its own: "the symbol for the Vietnamese dong", or where a call
        beside it took the task's: "its SHA-256, its Base64 form and its CRC32" are of one text.
        """
        if holds(self._task, said):
            return 0.0
        if self._beside(parameter, kind):
            return STATED
        if grounding.refers(self._part):
            return 0.0
        alike = [one for one in api.required if patterns.kind(one, api) == kind]
        own = patterns.find(kind, self._part) if kind in _NAMED else []
        return STATED if own and len(own) >= len(alike) else ANSWERED

    def _beside(self, parameter: Parameter, kind: str) -> bool:
        """Whether a call for a wish like this one took what the task says for such a parameter.

        Both begin with one possessive, or stand in one sentence and point back to nothing. For a
        text any quotation will do, whatever it was taken for.
        """
        mine = _POSSESSIVE.match(self._part)
        if mine is None and grounding.refers(self._part):
            return False
        quotations = spans.quoted(self._task) if kind == "text" else ()
        for step in self._path:
            theirs = _POSSESSIVE.match(about(step))
            given = json.loads(step.move.arguments) if step.ok else {}
            value = str(given.get(parameter.name, ""))
            value = value or next((str(one) for one in given.values() if one in quotations), "")
            alike = theirs and mine[0] == theirs[0] if mine else self._in_sentence(about(step))
            if alike and value and holds(self._task, value):
                return True
        return False

    def _in_sentence(self, other: str) -> bool:
        """Whether other words of the task stand in the part's sentence."""
        at, to = self._task.find(other), self._task.find(self._part)
        begin, end = min(at + len(other), to + len(self._part)), max(at, to)
        return at >= 0 <= to and not _STOP.search(self._task, begin, end)

    def in_full(self, option: str, parameter: Parameter) -> str:
        """Return the allowed value that the part names and ``option`` is only some words of."""
        of = spelled(option)
        longer = [
            one
            for one in parameter.enum
            if len(one) > len(option)
            and of.search(" ".join(re.split(r"[\s_-]+", one)))
            and spelled(one).search(self._part)
        ]
        return max(longer, key=len, default=option)

    def _relative(self, kind: str) -> str:
        """Return the one day that is named by its distance from today, "" for none.

        By the part, or by what leads up to it: "I'm in Rome tomorrow: when does the sun set?"
        """
        texts = (self._part, self._context) if kind == "date" else ()
        for text in texts:
            found = patterns.find(kind, text)
            if found:
                return found[0] if len(found) == 1 and days.is_relative(found[0]) else ""
        return ""
