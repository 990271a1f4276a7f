"""Which values an argument may take: what the task or an observation says, never an invention.

Candidates come in tiers, nearest first: the part of the task at hand, an observed fact of the
same name, the whole task, any observed fact. The first tier that has any decides, and the model
chooses within it. Pure; candidate lists are bounded.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from toolsrv_registry.api import Api, Parameter
from toolsrv_runtime.formats import patterns
from toolsrv_runtime.formats.facts import Fact, plain, words

CANDIDATE_LIMIT = 24
TEXT_LIMIT = 2_000
"""Characters of a source that candidates are taken from."""

_EDGE = frozenset(
    "a an the of for in on at to from by with and or then is are was were be as into about please "
    "what what's which who whose how when where why does do did it its it's that this these those "
    "there here my your our me i i'm you we us he she they if can could would will should shall "
    "also any some all many much more most than so just now right currently next last per "
    "between within using use found result resulting same tell show give get find list look "
    "need want like know let check calculate compute convert translate make create generate have "
    "has had long far old big e.g into out up down off over under good looks".split()
)
_QUOTED = re.compile(r"[\"“”«»]([^\"“”«»]{1,400})[\"“”«»]|(?<!\w)['‘’]([^'‘’]{1,400})['‘’](?!\w)")
_WORD = re.compile(r"[^\s,;:!?()\"“”]+")
_AFTER_COLON = re.compile(r":\s+(.{2,400})$")
_CODE = re.compile(r"\b(id|code|number|reference|key|ticket|zip|postcode)\b")
_TO = frozenset({"to", "target", "end", "destination", "second", "b", "until"})
_FROM = frozenset({"from", "source", "start", "origin", "first", "a", "base"})
_CUES = {
    "to": frozenset({"to", "into", "in", "and", "until"}),
    "from": frozenset({"from", "between"}),
}


@dataclass(frozen=True, slots=True)
class Sources:
    """What a model was given: the part of the task it is at, the task, observed facts."""

    part: str
    task: str
    facts: tuple[Fact, ...] = ()


def literal(text: str) -> str:
    """Return ``text`` as a Lark string."""
    return json.dumps(text, ensure_ascii=False)


def choice(options: Sequence[str]) -> str:
    """Return the Lark expression that allows exactly ``options``."""
    return " | ".join(literal(option) for option in options)


def candidates(
    parameter: Parameter, api: Api, sources: Sources, *, taken: Collection[str] = ()
) -> list[str]:
    """Return the values ``parameter`` may take, nearest first; empty when nothing is given.

    ``taken`` are values of earlier parameters of the same call, used again only if there is no
    other.
    """
    if parameter.enum:
        said = [v for v in parameter.enum if _mentions(sources.part, v)]
        return said or list(parameter.enum)
    if parameter.type.upper() == "BOOLEAN":
        return ["true", "false"]
    kind = patterns.kind(parameter, api)
    vocabulary = _vocabulary(api)
    same = [value for name, value in sources.facts if _same_name(parameter, name)]
    tiers = (
        _spans(sources.part, kind, vocabulary),
        same,
        _spans(sources.task, kind, vocabulary),
        [value for _, value in sources.facts] if not kind else [],
    )
    if same and _refers(sources.part):
        tiers = (same, *tiers)
    for tier in tiers:
        fresh = [v for v in dict.fromkeys(map(plain, tier)) if v and v not in taken]
        if not kind and not _CODE.search(words(parameter.name)):
            fresh = [v for v in fresh if re.search(r"[^\W\d]", v)]
        if fresh:
            text = sources.part if tier is tiers[0] else sources.task
            return _cued(parameter, fresh, text)[:CANDIDATE_LIMIT]
    return []


def has_own(parameter: Parameter, api: Api, sources: Sources, taken: Collection[str]) -> bool:
    """Whether the part at hand itself holds a value for an optional parameter."""
    kind = patterns.kind(parameter, api)
    if parameter.enum:
        return any(_mentions(sources.part, value) for value in parameter.enum)
    found = [v for v in map(plain, _spans(sources.part, kind, _vocabulary(api))) if v not in taken]
    if kind and kind != "number":
        return bool(found)
    return any(_is_cued(parameter, value, sources.part) for value in found)


def _spans(text: str, kind: str, vocabulary: Collection[str]) -> list[str]:
    text = text[:TEXT_LIMIT]
    if kind and kind != "text":
        found = patterns.find(kind, text)
        if found or kind in {"number", "email", "year", "coordinate"}:
            return found
    quoted = [a or b for a, b in _QUOTED.findall(text)]
    if quoted:
        return quoted
    if kind == "text":
        after = _AFTER_COLON.search(text)
        if after:
            return [after[1]]
    return _runs(text, vocabulary)


def _runs(text: str, vocabulary: Collection[str]) -> list[str]:
    """Return maximal runs of words that are neither loose words nor the API's own vocabulary.

    A capitalised word in the middle of a sentence is a name, whatever the vocabulary says.
    """
    runs: list[str] = []
    start = end = -1
    previous_end = 0
    for match in [*_WORD.finditer(text), None]:
        word = match[0].strip(".'’") if match else ""
        name = match is not None and match.start() > 0 and word[:1].isupper() and len(word) > 1
        loose = match is None or not word or word.lower() in _EDGE
        own = not name and _stem(word) in vocabulary
        broken = match is not None and bool(
            re.search(r"[,;:!?()\"]", text[previous_end : match.start()])
        )
        if start >= 0 and (loose or own or broken):
            runs.append(text[start:end])
            start = -1
        if match is not None and not loose and not own:
            start = match.start() if start < 0 else start
            end = match.end() - (len(match[0]) - len(match[0].rstrip(".'’")))
        previous_end = match.end() if match else previous_end
    named = [run for run in runs if run[:1].isupper()]
    return named + [run for run in runs if run not in named]


def _vocabulary(api: Api) -> set[str]:
    text = f"{words(api.name)} {words(api.tool)} {api.description[:300].lower()}"
    text += " " + " ".join(words(parameter.name) for parameter in api.parameters)
    return {_stem(word) for word in re.findall(r"[a-z]+", text)}


def _stem(word: str) -> str:
    lower = word.lower().removesuffix("'s").removesuffix("’s")
    for ending in ("ies", "es", "s"):
        if lower.endswith(ending) and len(lower) > len(ending) + 2:
            return lower.removesuffix(ending)
    return lower


def _same_name(parameter: Parameter, fact: str) -> bool:
    mine, theirs = words(parameter.name).split(), words(fact).split()
    return mine == theirs or (bool(mine) and bool(theirs) and mine[-1] == theirs[-1])


def _refers(text: str) -> bool:
    """Whether the text points back to a result."""
    return bool(
        re.search(
            r"\b(its?|that|those|the (?:result\w*|same|found|returned)|their|there|this|you found)\b",
            text.lower(),
        )
    )


def _mentions(text: str, value: str) -> bool:
    return bool(value) and re.search(rf"(?<!\w){re.escape(value)}(?!\w)", text, re.I) is not None


def _cued(parameter: Parameter, found: list[str], text: str) -> list[str]:
    """Return the candidates that stand right behind the parameter's own words, if any do."""
    cued = [value for value in found if _is_cued(parameter, value, text)]
    return cued or found


def _is_cued(parameter: Parameter, value: str, text: str) -> bool:
    position = text.lower().find(value.lower())
    if position < 0:
        return False
    before = re.findall(r"[a-z]+", text[:position].lower())[-3:]
    after = re.findall(r"[a-z]+", text[position + len(value) :].lower())[:1]
    name = words(parameter.name).split()
    cues = {word for word in name if word not in _TO | _FROM}
    if name and name[0] in _TO:
        return bool(before) and before[-1] in _CUES["to"]
    if name and name[0] in _FROM:
        return bool(before) and before[-1] in _CUES["from"]
    stems = {_stem(cue) for cue in cues}
    return any(_stem(word) in stems for word in before) or any(_stem(w) in stems for w in after)
