"""Which values an argument may take: what the task or an observation says, never an invention.

Candidates are gathered from the need at hand, the text that leads up to it, the whole task and
the observed facts. Those beside the parameter's own words ("65 percent humidity") come before
others, then the nearest; the model chooses within the best group. Pure; lists are bounded.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from toolsrv_registry.api import Api, Parameter
from toolsrv_runtime.formats import cues, patterns
from toolsrv_runtime.formats.facts import Fact, plain, words

CANDIDATE_LIMIT = 24
TEXT_LIMIT = 2_000
"""Characters of a source that candidates are taken from."""

_EDGE = frozenset(
    [
        "a",
        "an",
        "the",
        "of",
        "for",
        "in",
        "on",
        "at",
        "to",
        "from",
        "by",
        "with",
        "and",
        "or",
        "then",
        "is",
        "are",
        "was",
        "were",
        "be",
        "as",
        "into",
        "about",
        "please",
        "what",
        "what's",
        "which",
        "who",
        "whose",
        "how",
        "when",
        "where",
        "why",
        "does",
        "do",
        "did",
        "it",
        "its",
        "it's",
        "that",
        "this",
        "these",
        "those",
        "there",
        "here",
        "my",
        "your",
        "our",
        "me",
        "i",
        "i'm",
        "you",
        "we",
        "us",
        "he",
        "she",
        "they",
        "if",
        "can",
        "could",
        "would",
        "will",
        "should",
        "shall",
        "also",
        "any",
        "some",
        "all",
        "many",
        "much",
        "more",
        "most",
        "than",
        "so",
        "just",
        "now",
        "right",
        "currently",
        "next",
        "last",
        "per",
        "his",
        "her",
        "between",
        "within",
        "using",
        "use",
        "found",
        "result",
        "resulting",
        "same",
        "tell",
        "show",
        "give",
        "get",
        "find",
        "list",
        "look",
        "need",
        "want",
        "like",
        "know",
        "let",
        "check",
        "calculate",
        "compute",
        "convert",
        "translate",
        "make",
        "create",
        "generate",
        "have",
        "has",
        "had",
        "long",
        "far",
        "old",
        "big",
        "e.g",
        "into",
        "out",
        "up",
        "down",
        "off",
        "over",
        "under",
        "good",
        "looks",
        "called",
        "mean",
        "means",
        "today's",
        "am",
        "not",
        "no",
        "yes",
        "say",
        "says",
        "said",
        "go",
        "goes",
        "put",
        "back",
        "fall",
        "come",
        "take",
        "takes",
        "long",
        "because",
    ]
)
_QUOTED = re.compile(r"[\"“”«»]([^\"“”«»]{1,400})[\"“”«»]|(?<!\w)['‘’]([^'‘’]{1,400})['‘’](?!\w)")
_WORD = re.compile(r"[^\s,;:!?()\"“”]+")
_AFTER_COLON = re.compile(r":\s+(.{2,400})$")
_NOTHING = frozenset({"unknown", "none", "null", "n/a", "true", "false"})
_CODE = re.compile(r"\b(id|code|number|reference|key|ticket|zip|postcode)\b")


@dataclass(frozen=True, slots=True)
class Sources:
    """What a model was given: the need at hand, what leads up to it, the task, observed facts."""

    part: str
    context: str
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
    """Return the values ``parameter`` may take, best first; empty when nothing is given.

    ``taken`` are values of earlier parameters of the same call, used again only if there is no
    other.
    """
    if parameter.enum:
        said = _mentioned(parameter, sources) or list(parameter.enum)
        return [value for value in said if value not in taken] or said
    if parameter.type.upper() == "BOOLEAN":
        return ["true", "false"]
    kind = patterns.kind(parameter, api)
    same = [value for name, value in sources.facts if _same_name(parameter, name)]
    if kind not in patterns.LOOSE:
        same = [found for value in same for found in patterns.find(kind, value)]
    need, context, task = _tiers(parameter, api, sources)
    tied = [v for v in need if cues.strength(parameter, plain(v), sources.task) > 0]
    if _refers(sources.part):
        tiers = [tied, same, context, need, task]
    else:
        tiers = [need, same, context, task]
    if not kind:
        tiers.append([value for _, value in sources.facts])
    others = [other for other in api.parameters if other is not parameter]
    for tier in tiers:
        fresh = [v for v in dict.fromkeys(map(plain, tier)) if v and v not in taken]
        fresh = [v for v in fresh if v.lower() not in _NOTHING]
        mine = [v for v in fresh if not _anothers(parameter, others, v, sources.task)]
        free = [v for v in mine if not _anothers(parameter, others, v, sources.task, least=1)]
        mine = free or mine if kind in patterns.LOOSE else mine
        if mine:
            ties = {v: cues.strength(parameter, v, sources.task) for v in mine}
            best = max(ties.values())
            return [v for v in mine if ties[v] == best][:CANDIDATE_LIMIT]
    return []


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


def ties(api: Api, sources: Sources) -> int:
    """Return how many parameters the need, or what leads up to it, speaks of.

    It names an allowed value, holds a value that looks right, or has the parameter's own words.
    """
    count = 0
    for parameter in api.parameters:
        kind = patterns.kind(parameter, api)
        if parameter.enum:
            texts = (sources.part, sources.context)
            count += any(cues.mentions(t, v) for v in parameter.enum for t in texts)
            continue
        near = [v for tier in _tiers(parameter, api, sources)[:2] for v in map(plain, tier)]
        typed = kind not in patterns.LOOSE and kind != "number"
        count += bool(near) and (
            typed or any(cues.strength(parameter, v, sources.task) > 0 for v in near)
        )
    return count


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


def has_own(parameter: Parameter, api: Api, sources: Sources, taken: Collection[str]) -> bool:
    """Whether the need itself, or what leads up to it, holds a value for an optional parameter."""
    if parameter.enum:
        return bool(_mentioned(parameter, sources))
    kind = patterns.kind(parameter, api)
    need, context, task = (
        [v for v in map(plain, tier) if v not in taken] for tier in _tiers(parameter, api, sources)
    )
    if kind not in {"", "number", "text", "numbers", "measure", "name"}:
        return bool(need or context)
    return any(cues.strength(parameter, v, sources.task) > 0 for v in (*need, *context)) or any(
        cues.strength(parameter, v, sources.task) >= cues.BESIDE for v in task
    )


def _mentioned(parameter: Parameter, sources: Sources) -> list[str]:
    for text in (sources.part, sources.context, sources.task):
        said = [value for value in parameter.enum if cues.mentions(text, value)]
        if said:
            return said
    return []


def _tiers(parameter: Parameter, api: Api, sources: Sources) -> list[list[str]]:
    """Return the values in the need, in what leads up to it, and in the whole task."""
    kind = patterns.kind(parameter, api)
    texts = [text[:TEXT_LIMIT] for text in (sources.part, sources.context, sources.task)]
    if kind == "text":
        quoted = [[a or b for a, b in _QUOTED.findall(text)] for text in texts]
        colon = _AFTER_COLON.search(sources.part)
        if colon and not quoted[0]:
            quoted[0] = [colon[1]]
        if any(quoted):
            return quoted
    elif kind:
        found = [patterns.find(kind, text) for text in texts]
        if any(found) or kind not in patterns.LOOSE:
            return found
    vocabulary = _vocabulary(api)
    if _CODE.search(words(parameter.name)):
        coded = [_codes(text) for text in texts]
        if any(coded):
            return coded
    texts = [patterns.without_typed(text) for text in texts]
    runs = [_runs(text, vocabulary) for text in texts]
    if not runs[0]:  # what the description gives as an example may be just what is meant
        runs[0] = _runs(texts[0], _vocabulary(api, described=False))
    if kind == "name":
        named = [[run for run, name in group if name] for group in runs]
        if any(named):
            return named
    return [[run for run, _ in group] for group in runs]


def _codes(text: str) -> list[str]:
    """Return the words with digits in them, and words all in capitals."""
    found = (match[0].strip(".'’") for match in _WORD.finditer(text))
    return [w for w in found if re.search(r"\d", w) or (w.isupper() and len(w) > 1)]


def _runs(text: str, vocabulary: Collection[str]) -> list[tuple[str, bool]]:
    """Return what is quoted, then maximal runs of words that mean something of their own.

    Loose words and the API's own vocabulary break a run; but a capitalised word in the middle of
    a sentence is a name, whatever the vocabulary says. Names, marked True, come first.
    """
    runs: list[tuple[str, bool]] = []
    start = end = previous = 0
    inside = named = False
    for match in [*_WORD.finditer(text), None]:
        word = match[0].strip(".'’") if match else ""
        broken = match is not None and re.search(r"[,;:!?()\"]", text[previous : match.start()])
        means = match is not None and _means(text, match, word, vocabulary)
        if inside and (broken or not means):
            runs.append((text[start:end], named))
            inside = False
        if match is not None and means:
            named = named if inside else _is_name(text, match, word)
            start = start if inside else match.start()
            end = match.start() + len(match[0].rstrip(".'’"))
            inside = True
        previous = match.end() if match else previous
    quoted = [(a or b, True) for a, b in _QUOTED.findall(text)]
    return sorted([*quoted, *runs], key=lambda run: not run[1])


def _means(text: str, match: re.Match[str], word: str, vocabulary: Collection[str]) -> bool:
    if not word or word.lower() in _EDGE or word[:1].isdigit():
        return False
    return _is_name(text, match, word) or cues.stem(word) not in vocabulary


def _is_name(text: str, match: re.Match[str], word: str) -> bool:
    """Whether a word is capitalised for its own sake, not because a sentence begins."""
    before = text[: match.start()].rstrip().rstrip("\"'(“‘")
    opens = not before or before.endswith((".", "?", "!", ":"))
    return not opens and word[:1].isupper() and len(word) > 1


def _vocabulary(api: Api, *, described: bool = True) -> set[str]:
    """Return the stems of an API's own words, with or without its description's."""
    text = f"{words(api.name)} {words(api.tool)}"
    text += f" {api.description[:300].lower()}" if described else ""
    text += " " + " ".join(words(parameter.name) for parameter in api.parameters)
    return {cues.stem(word) for word in re.findall(r"[a-z]+", text)}


def _same_name(parameter: Parameter, fact: str) -> bool:
    mine, theirs = words(parameter.name).split(), words(fact).split()
    if not mine or not theirs:
        return False
    if set(mine) <= set(theirs) or mine[-1] == theirs[-1]:
        return True
    return mine[-1] in _ALSO.get(theirs[-1], ())


_ALSO = {
    "capital": ("city",), "result": ("date", "number"), "text": ("name",), "name": ("text",),
    "airport": ("code",), "language": ("main",), "currency": ("code",), "sum": ("number", "amount"),
}  # fmt: skip
"""Names under which a response's fact is asked for again: the capital of a country is a city."""


def _refers(text: str) -> bool:
    """Whether the text points back to a result."""
    return bool(
        re.search(
            r"\b(its?|that|those|the (?:result\w*|same|found|returned)|their|there|this|you found|"
            r"then)\b",
            text.lower(),
        )
    )
