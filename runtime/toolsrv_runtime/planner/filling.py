"""The arguments of one call, written key by key by a model that copies.

A required parameter always gets a value; whether an optional one does is the model's choice,
with a hint from the text. A value is one of the listed ones, a typed value that stands in the
sources, or a run of their words.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

from toolsrv_registry.api import Api, Parameter
from toolsrv_registry.functions import Function
from toolsrv_registry.languages import fold_accents
from toolsrv_runtime.planner import copying, layout
from toolsrv_runtime.planner.calculating import operands
from toolsrv_runtime.planner.inverse import put_back, wants_back
from toolsrv_runtime.planner.matched import Matched, holds
from toolsrv_runtime.planner.reading import grounding, mileage, spans, spelling
from toolsrv_runtime.planner.reading.extent import narrowed
from toolsrv_runtime.planner.reading.measures import (
    has_unit,
    is_of_another,
    is_share,
    unit_of_answer,
)
from toolsrv_runtime.planner.scene import Scene, used
from toolsrv_runtime.planner.stated import STATED, Stated
from toolsrv_runtime.planner.turn import Turn
from toolsrv_runtime.values import facts, kinds

MEANT = 2.0
"""Nats that an optional parameter gains when the text speaks of it, and loses when it does not."""

TYPED_LIMIT = 24
"""Values that a parameter is offered."""

GIVEN = 3.0
"""Nats that an optional parameter gains for each of the log-odds that its value is stated."""

SURE = 6.0
"""Log-odds beyond which they count no more."""

MATCHED = 2.0
"""Nats that a value gains for each of its log-probability among the words of the texts."""

VALUE_WEIGHT = 0.3
"""What the model's own log-probability of a value counts beside that."""

UNSEEN = -12.0
"""The log-probability of a value that the matcher has not seen, or gives less."""

DISTANT = -20.0
"""The log-probability of words that are too unlikely to stand in for what a rule speaks against."""

NEARBY = 4.0
"""Nats that a value gains when the text ties it to the parameter."""

_BARE_NUMBER = re.compile(r"[\d.,\s()]+")
_EDGES = " ,;:."


class Filling:
    """Writes the arguments for a part of the task into a turn."""

    def __init__(
        self, turn: Turn, part: str, scene: Scene, matched: Matched, *, grounded: bool
    ) -> None:
        self._grounded = grounded
        self._turn = turn
        self._part = part
        self._scene = scene
        self._matched = matched
        self._sources = scene.sources(part)
        self._says = Stated(part, scene)

    def arguments(self, function: Function) -> dict[str, str] | None:
        """Return the arguments, or None where a required one finds nothing, or nothing new."""
        api = function.api
        spent = self._scene.spent(self._part, function.name)
        undone = operands(self._scene)
        if not wants_back(self._scene.task):
            undone = undone | put_back(function, self._scene)
        written: dict[str, str] = {}
        self._turn.force("{")
        required = {parameter.name for parameter in api.required}
        for key, parameter in function.parameters.items():
            if parameter.name not in required and not self._means(
                key, parameter, function, written
            ):
                continue
            past = used(spent, key)
            self._turn.force((", " if written else "") + f'"{key}": "')
            value = self._value(parameter, api, {*written.values(), *undone}, past)
            if value is None:
                return None
            value = narrowed(parameter, self._says.meant(parameter, api, value), written.values())
            if past and value not in past:
                spent = []  # another try differs in the first argument that can
            written[key] = value
        self._turn.force("}")
        return None if spent else written

    def _means(
        self, key: str, parameter: Parameter, function: Function, written: Mapping[str, str]
    ) -> bool:
        """Whether an optional parameter is to be given: the model's choice, with a hint."""
        if mileage.is_untold(parameter, self._scene.task):
            return False
        api = function.api
        keys = list(function.parameters)
        required = {one.name for one in api.required}
        later = keys[keys.index(key) + 1 :]
        needed = [other for other in later if function.parameters[other].name in required]
        last = later.index(needed[0]) + 1 if needed else len(later)
        joint = ", " if written else ""
        options = [f'{joint}"{other}": "' for other in (key, *later[:last])]
        scores = self._turn.score(options if needed else [*options, "}"])
        odds = self._matched.given(api, parameter)
        if self._says.value(parameter, api):
            odds = GIVEN * SURE
        elif odds is None:
            own = grounding.has_own(parameter, api, self._sources, set(written.values()))
            odds = MEANT if own else -MEANT
        else:
            odds = GIVEN * min(max(odds, -SURE), SURE)
        return scores[0] + odds > max(scores[1:])

    def _value(
        self, parameter: Parameter, api: Api, taken: Collection[str], past: Collection[str]
    ) -> str | None:
        """Let the model choose or copy a value and return it as the API reads it."""
        kind = kinds.value_kind(parameter, api)
        if not self._grounded and not parameter.enum:
            return (
                kinds.normalise_value(kind, self._turn.write(copying.free())[:-1].strip()) or None
            )
        plain = self._says.value(parameter, api)
        plain = plain or unit_of_answer(parameter, taken, self._scene.seen, self._scene.task)
        if plain and kinds.normalise_value(kind, plain) not in past:
            return kinds.normalise_value(kind, self._chosen([plain]))
        near = grounding.said(parameter, api, self._sources, taken=taken)
        enum = parameter.enum and not past
        named = self._matched.listed(api, parameter, taken) if enum else ""
        if named:
            named = self._says.in_full(named, parameter)
            return kinds.normalise_value(kind, self._chosen([named]))
        if parameter.enum or parameter.type.upper() == "BOOLEAN" or past:
            options = [one for one in near if self._read(kind, one) not in past] or near
            return self._read(kind, self._chosen(options)) if options else None
        whole = spans.quoted(self._scene.task) if kind == "text" else self._typed(kind)
        whole = [one for one in whole if self._read(kind, one) not in taken]
        pool = self._pool(parameter, api, near, whole)
        if kind == "number" and is_share(parameter):
            pool = [one for one in pool if not has_unit(one, self._scene.task)]
        if kind == "number":
            told = [one for one in pool if not is_of_another(parameter, one, self._scene.task)]
            pool = told or pool
        typed = [
            one
            for one in pool
            if spelling.looks(kind, one, self._scene.task) and _is_named(parameter, kind, one)
        ]
        used_up = {fold_accents(one) for one in taken}
        free = [one for one in typed or pool if fold_accents(self._read(kind, one)) not in used_up]
        scores = {}
        options = free or typed or pool
        if self._matched.given(api, parameter) is not None:
            away = {one: self._says.away(one, parameter, kind, api) for one in pool}
            for one in pool:
                fits = self._matched.within if one in whole else self._matched.score
                scores[one] = fits(api, parameter, one) - away[one]
            for some in (options, pool):
                close = [one for one in some if away[one] < STATED]
                if any(scores[one] >= DISTANT for one in close):
                    options = close
                    break
        if kind == "expression":  # a bare number is nothing to work out
            options = [one for one in options if not _BARE_NUMBER.fullmatch(one)]
        return self._best(kind, options, near, scores)

    def _pool(
        self, parameter: Parameter, api: Api, near: Sequence[str], whole: Sequence[str]
    ) -> list[str]:
        """Return the words that may be a value: the matcher's, those ``near``, ``whole``, copied."""
        kind = kinds.value_kind(parameter, api)
        copied = self._copied(near)
        known = [*near, *whole]
        exact = kind not in kinds.LOOSE_KINDS or kind in {"text", "name", "country"}
        if exact and any(copied in one for one in known):
            copied = ""  # one of them, or cut off from it
        pool = dict.fromkeys([*known, copied] if copied else known)
        if kind in kinds.RARE_KINDS or kind == "text":  # cut off from a longer one
            own = whole if kind == "text" else ()
            pool = dict.fromkeys(
                a for a in pool if a in own or not any(a != b and a in b for b in pool)
            )
        matched = [
            said
            for said in self._matched.values(api, parameter)
            if not any(said != one and holds(one, said) for one in whole)
        ]
        same = self._says.beside(parameter, kind)
        return list(dict.fromkeys([*matched, *([same] if same else []), *pool]))

    def _best(
        self,
        kind: str,
        options: Sequence[str],
        near: Collection[str],
        matched: Mapping[str, float],
    ) -> str | None:
        """Return the option that the model, with hints from text and matcher, finds likeliest."""
        forms = _forms(options[:TYPED_LIMIT])
        if not forms:
            return None
        told = list(forms)
        if len(told) > 1:
            scores = self._turn.score([f'{one}"' for one in told])
            hints = [NEARBY if forms[one] in near else 0.0 for one in told]
            fits = [MATCHED * max(matched.get(forms[one], UNSEEN), UNSEEN) for one in told]
            own = VALUE_WEIGHT if matched else 1.0
            weights = [
                own * score + hint + fit
                for score, hint, fit in zip(scores, hints, fits, strict=True)
            ]
            told = [told[max(range(len(told)), key=weights.__getitem__)]]
        self._turn.force(told[0], data=True)
        self._turn.force('"')
        return self._read(kind, forms[told[0]])

    def _read(self, kind: str, said: str) -> str:
        return spelling.read(kind, said, self._scene.task)

    def _copied(self, near: Sequence[str]) -> str:
        """Let the model copy words of the task or a response; return what they stand for."""
        mark = self._turn.mark()
        task = layout.shown(self._scene.task)
        seen = dict.fromkeys(value for _, value in self._scene.seen)
        said = self._turn.write(copying.value([task, *seen]))[:-1].strip(_EDGES)
        self._turn.rewind(mark)
        if len(said) >= facts.VALUE_LIMIT - 8:
            for option in near:
                if facts.plain(option).startswith(said):
                    return option
        return copying.original(said, self._scene.task) if said else ""

    def _typed(self, kind: str) -> list[str]:
        """Return what looks like a value of the kind, in the task and the responses."""
        if kind in kinds.LOOSE_KINDS:
            return []
        texts = [self._scene.task, *(value for _, value in self._scene.seen)]
        found = [one for text in texts for one in kinds.find_values(kind, text)]
        return list(dict.fromkeys(one for one in found if facts.plain(one)))[:TYPED_LIMIT]

    def _chosen(self, options: Sequence[str]) -> str:
        """Let the model choose one of the values and return it whole.

        What it reads and writes is a short plain form: exact text, however long, reaches the call.
        """
        forms = _forms(options)
        return forms[self._turn.write(copying.one_of(tuple(forms)))[:-1]]


def _forms(options: Sequence[str]) -> dict[str, str]:
    """Return short plain form -> the first value that has it."""
    forms: dict[str, str] = {}
    for option in options:
        forms.setdefault(facts.plain(option)[: facts.VALUE_LIMIT].strip(), option)
    return forms


def _is_named(parameter: Parameter, kind: str, said: str) -> bool:
    """Whether a name has letters: a number is none, unless the parameter is one of codes.

    "#708090" is a colour.
    """
    plain = kind in {"", "name", "country", "zone", "currency", "colour"} and not grounding.is_code(
        parameter
    )
    return not plain or said.startswith("#") or any(letter.isalpha() for letter in said)


def has_left(function: Function, part: str, scene: Scene) -> bool:
    """Whether a function has arguments left that were not tried for a part of the task."""
    spent = scene.spent(part, function.name)
    if not spent:
        return True
    sources = scene.sources(part)
    return any(
        set(grounding.candidates(parameter, function.api, sources)) - used(spent, key)
        for key, parameter in function.parameters.items()
        if key in spent[0]
    )
