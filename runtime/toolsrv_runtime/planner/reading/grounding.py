"""Which values an argument may take: what the task or an observation says, never an invention.

Candidates are gathered from the need at hand, the text that leads up to it, the whole task and
the observed facts. Those beside the parameter's own words ("65 percent humidity") come before
others, then the nearest; the model chooses within the best group. Pure; lists are bounded.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from toolsrv_registry.api import Api, Parameter
from toolsrv_runtime.planner.reading import cues, spans
from toolsrv_runtime.values import kinds
from toolsrv_runtime.values.facts import Fact, plain, words

CANDIDATE_LIMIT = 24
TEXT_LIMIT = 20_000
"""Characters of a source that candidates are taken from."""

_AFTER_COLON = re.compile(r":\s+(.{2,400})$")
_NOTHING = frozenset({"unknown", "none", "null", "n/a", "true", "false"})
_CODE = re.compile(r"\b(id|identifier|code|number|reference|key|ticket|zip|postcode)\b")
_NEEDS_CUE = frozenset(
    {"", "number", "text", "numbers", "weight", "length", "name", "country", "measure"}
)
"""Kinds that are so common in a text that only its words tell whether an optional one is meant."""

_REFERS = re.compile(
    r"\b(its?|that|those|their|there|this|then|them|hers?|his|comes out|what(?:['’]?s| is) left|you (?:found|get)|the (?:result\w*|"
    r"same|new|found|returned|reduced|discounted|converted|decoded|encoded|reversed))\b"
)
_ALSO = {
    "capital": ("city",), "result": ("date", "number"), "text": ("name",), "name": ("text",),
    "airport": ("code",), "language": ("main",), "currency": ("code",), "sum": ("number", "amount"),
    "time": ("date",),
}  # fmt: skip
"""Names under which a response's fact is asked for again: the capital of a country is a city."""


@dataclass(frozen=True, slots=True)
class Sources:
    """What a model was given: the need at hand, what leads up to it, the task, observed facts."""

    part: str
    context: str
    task: str
    facts: tuple[Fact, ...] = ()


def candidates(
    parameter: Parameter, api: Api, sources: Sources, *, taken: Collection[str] = ()
) -> list[str]:
    """Return the values ``parameter`` may take, as APIs read them; empty when nothing is given."""
    kind = kinds.value_kind(parameter, api)
    told = said(parameter, api, sources, taken=taken)
    return list(dict.fromkeys(kinds.normalise_value(kind, value) for value in told))


def said(
    parameter: Parameter, api: Api, sources: Sources, *, taken: Collection[str] = ()
) -> list[str]:
    """Return the values ``parameter`` may take, as the sources say them, best first.

    ``taken`` are values of earlier parameters of the same call, as APIs read them, used again
    only if there is no other.
    """
    rivals = api.required if parameter in api.required else api.parameters
    others = [other for other in rivals if other is not parameter]
    if parameter.enum:
        said = _mentioned(parameter, sources) or list(parameter.enum)
        free = [value for value in said if value not in taken] or said
        return [
            v for v in free if not _anothers(parameter, others, v, sources.task, least=1)
        ] or free
    if parameter.type.upper() == "BOOLEAN":
        return ["true", "false"]
    kind = kinds.value_kind(parameter, api)
    for tier in _ordered(parameter, api, sources, kind):
        fresh = [
            v
            for v in dict.fromkeys(tier)
            if plain(v) and kinds.normalise_value(kind, v) not in taken
        ]
        fresh = [v for v in fresh if v.lower() not in _NOTHING]
        mine = [v for v in fresh if not _anothers(parameter, others, v, sources.task)]
        if kind in kinds.LOOSE_KINDS:
            free = [v for v in mine if not _anothers(parameter, others, v, sources.task, least=1)]
            mine = free or mine
        if mine:
            ties = {v: cues.strength(parameter, v, sources.task) for v in mine}
            best = max(ties.values())
            return [v for v in mine if ties[v] == best][:CANDIDATE_LIMIT]
    return []


def is_code(parameter: Parameter) -> bool:
    """Whether a parameter takes codes and numbers of all kinds."""
    return bool(_CODE.search(words(parameter.name)))


def fills(api: Api, sources: Sources) -> bool:
    """Whether every required parameter finds a value of its own."""
    taken: set[str] = set()
    for parameter in api.required:
        found = candidates(parameter, api, sources, taken=taken)
        if not found or (parameter.enum and not _mentioned(parameter, sources)):
            return False
        if len(found) == 1 and not parameter.enum:
            taken.add(found[0])
    return True


def borrows(api: Api, sources: Sources) -> bool:
    """Whether a required number is found neither in the need nor in what leads up to it.

    A place or a date is often named once for a whole task; a number seldom is.
    """
    near = dataclasses.replace(sources, task=sources.context)
    taken: set[str] = set()
    for parameter in api.required:
        if kinds.value_kind(parameter, api) == "number":
            found = candidates(parameter, api, near, taken=taken)
            if not found:
                return True
            taken.add(found[0])
    return False


def ties(api: Api, sources: Sources) -> int:
    """Return how many parameters the need, or what leads up to it, speaks of.

    It names an allowed value, holds a value that looks right (a rare kind counts twice), or has
    the parameter's own words.
    """
    count = 0
    for parameter in api.parameters:
        kind = kinds.value_kind(parameter, api)
        if parameter.enum:
            texts = (sources.part, sources.context)
            count += any(cues.mentions(t, v) for v in parameter.enum for t in texts)
            continue
        near = [v for tier in _tiers(parameter, api, sources)[:2] for v in tier]
        typed = kind not in kinds.LOOSE_KINDS and kind != "number"
        tied = near and (typed or any(cues.strength(parameter, v, sources.task) > 0 for v in near))
        count += (2 if kind in kinds.RARE_KINDS else 1) if tied else 0
    return count


def has_own(parameter: Parameter, api: Api, sources: Sources, taken: Collection[str]) -> bool:
    """Whether an optional parameter is meant.

    The need, or what leads up to it, holds a value for it; or the task ties one to it firmly; or
    it is the task's only date.
    """
    if parameter.enum:
        return bool(_mentioned(parameter, sources))
    kind = kinds.value_kind(parameter, api)
    need, context, task = (
        [v for v in tier if v not in taken] for tier in _tiers(parameter, api, sources)
    )
    if kind == "date" and any(kinds.value_kind(p, api) == "date" for p in api.required):
        return len(set(need)) > 1  # one date alone belongs to the required parameter
    if kind not in _NEEDS_CUE:
        same = _same(parameter, kind, sources) if refers(sources.part) else []
        return bool(need or context or same) or (kind in {"date", "year"} and len(set(task)) == 1)
    return any(cues.strength(parameter, v, sources.task) > 0 for v in (*need, *context)) or any(
        cues.strength(parameter, v, sources.task) >= cues.BESIDE for v in task
    )


def _ordered(parameter: Parameter, api: Api, sources: Sources, kind: str) -> list[list[str]]:
    """Return groups of values, the nearest first."""
    same = _same(parameter, kind, sources)
    need, context, task = _tiers(parameter, api, sources)
    if refers(sources.part):
        tied = [v for v in need if cues.strength(parameter, v, sources.task) > 0]
        groups = [tied, same, context, need, task]
    else:
        groups = [need, same, context, task]
    beside = [v for v in context if cues.strength(parameter, v, sources.task) >= cues.BESIDE]
    if beside and not any(cues.strength(parameter, v, sources.task) for v in need):
        groups.insert(0, beside)
    if not kind:
        groups.append([value for _, value in sources.facts])
    return groups


def _same(parameter: Parameter, kind: str, sources: Sources) -> list[str]:
    """Return the observed facts of the parameter's name, as far as they look right."""
    same = [value for name, value in sources.facts if is_named(parameter, name)]
    # What the task said itself is no result that it could refer to.
    same = [value for value in same if value not in sources.task] or same
    if kind in kinds.LOOSE_KINDS:
        return same
    return [found for value in same for found in kinds.find_values(kind, value)]


def _anothers(
    parameter: Parameter,
    others: Sequence[Parameter],
    value: str,
    text: str,
    *,
    least: int = cues.BESIDE,
) -> bool:
    """Whether the words around a value tie it, this strongly, to another parameter of the call."""
    mine = cues.strength(parameter, value, text)
    return any(cues.strength(other, value, text) >= max(mine + 1, least) for other in others)


def _mentioned(parameter: Parameter, sources: Sources) -> list[str]:
    for text in (sources.part, sources.context, sources.task):
        said = [value for value in parameter.enum if cues.mentions(text, value)]
        if said:
            return [v for v in said if not any(v != other and v in other for other in said)]
    return []


def _tiers(parameter: Parameter, api: Api, sources: Sources) -> list[list[str]]:
    """Return the values in the need, in what leads up to it, and in the whole task."""
    kind = kinds.value_kind(parameter, api)
    texts = [text[:TEXT_LIMIT] for text in (sources.part, sources.context, sources.task)]
    vocabulary = _vocabulary(api)
    if kind == "text":
        marked = [spans.quoted(text) for text in texts]
        colon = _AFTER_COLON.search(sources.part)
        if colon and not marked[0]:
            marked[0] = [colon[1]]
        if any(marked):
            return marked
        coded = [spans.codes(text, vocabulary, joined=True) for text in texts]
        if coded[0]:
            return coded
    elif kind:
        found = [kinds.find_values(kind, text) for text in texts]
        if any(found) or kind not in kinds.LOOSE_KINDS:
            return found
    elif _CODE.search(words(parameter.name)):
        coded = [
            [*spans.codes(text, vocabulary), *kinds.find_values("number", text)] for text in texts
        ]
        if any(coded):
            return coded
    return _runs(texts, kind, api, vocabulary)


def _runs(
    texts: Sequence[str], kind: str, api: Api, vocabulary: Collection[str]
) -> list[list[str]]:
    texts = [kinds.without_typed(text) for text in texts]
    found = [spans.runs(text, vocabulary) for text in texts]
    if not found[0]:  # what the description gives as an example may be just what is meant
        found[0] = spans.runs(texts[0], _vocabulary(api, described=False))
    if kind in {"name", "country", "text", "zone"}:
        named = [[run for run, name in group if name] for group in found]
        if any(named):
            return named
    return [[run for run, _ in group] for group in found]


def _vocabulary(api: Api, *, described: bool = True) -> set[str]:
    """Return the stems of an API's own words, with or without its description's."""
    text = f"{words(api.name)} {words(api.tool)}"
    text += f" {api.description[:300].lower()}" if described else ""
    text += " " + " ".join(words(parameter.name) for parameter in api.parameters)
    return {cues.stem(word) for word in re.findall(r"[a-z]+\d*", text)}


def is_named(parameter: Parameter, fact: str) -> bool:
    """Whether a response's fact has the name under which a parameter asks for it."""
    mine = [_singular(word) for word in words(parameter.name).split()]
    theirs = [_singular(word) for word in words(fact).split()]
    if not mine or not theirs:
        return False
    if set(mine) <= set(theirs) or mine[-1] == theirs[-1]:
        return True
    return mine[-1] in _ALSO.get(theirs[-1], ())


def _singular(word: str) -> str:
    return f"{word[:-3]}y" if word.endswith("ies") and len(word) > 4 else word


def refers(text: str) -> bool:
    """Whether the text points back to a result."""
    return bool(_REFERS.search(text.lower()))
