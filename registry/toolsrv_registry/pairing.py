"""An API and a text side by side, in the tokens that the matcher takes.

First the API: name and description, then each parameter behind a marker; behind it the text, and
what earlier calls answered. A token's kind says which of these it belongs to, and whether it
stands in the clause that is asked about. Where no clause is marked, the question is whether the
API serves any, and which. Shared by the matcher and its training. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from toolsrv_registry.api import Api, Parameter
from toolsrv_registry.words import words

DOCUMENT, TEXT, CLAUSE, FACT = range(4)
"""The kinds of tokens."""

MARKER = 1
"""The token before a parameter: the first that BERT's vocabulary leaves free."""

MOST_PARAMETERS = 10
LISTED = 12
"""Allowed values of a parameter that are read."""

HEAD_TOKENS, TEXT_TOKENS, FACT_TOKENS, FACTS_TOKENS = 48, 160, 24, 88
PARAMETER_TOKENS, LISTING_TOKENS, PARAMETERS_TOKENS = 20, 56, 200
"""Of one parameter, of one with allowed values, and of all."""

WHOLE_TOKENS = TEXT_TOKENS + FACTS_TOKENS
"""At most 512 in all, as many as the encoder has places for; a whole text has the facts' room."""

_CLS, _SEP = 101, 102
_BEFORE = 16
"""Tokens in front of the clause that a long text keeps at least."""


@dataclass(frozen=True, slots=True)
class Sentence:
    """A tokenised text: ids, and where in it each token stands (begin, end)."""

    ids: tuple[int, ...]
    places: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class PairedTokens:
    """What the matcher reads: ``ids`` and ``kinds`` (tokens,), ``markers`` (1 + parameters,).

    The first marker is the first token of all: it stands for the clause that the API serves.
    ``options`` has for each marker the first and last tokens of its allowed values, None for a
    value that was cut off; nothing where any words may be the value.
    ``sources[i]`` says where token ``i`` is from: (0, begin, end) in the text, (n, begin, end) in
    the n-th fact's value, None for everything else.
    """

    ids: tuple[int, ...]
    kinds: tuple[int, ...]
    markers: tuple[int, ...]
    sources: tuple[tuple[int, int, int] | None, ...]
    options: tuple[tuple[tuple[int, int] | None, ...], ...]

    def places(self, marker: int) -> tuple[list[int], list[int]]:
        """Return where what a marker stands for may begin, and where it may end."""
        options = self.options[marker]
        if options:
            known = [one for one in options if one is not None]
            return [first for first, _ in known], [last for _, last in known]
        told = [at for at, one in enumerate(self.sources) if one is not None]
        return told, told


@dataclass(frozen=True, slots=True)
class Document:
    """An API in tokens. ``listed`` has, for each parameter, where its allowed values stand."""

    head: Sentence
    parameters: tuple[Sentence, ...]
    listed: tuple[tuple[tuple[int, int], ...], ...]


def tokenise(tokenizer: Any, text: str) -> Sentence:
    """Return a text in tokens, without those that begin and end it."""
    # Half a surrogate pair has no UTF-8; the sign in its place keeps the others where they are.
    readable = text.encode("utf-8", "replace").decode("utf-8")
    found = tokenizer.encode(readable, add_special_tokens=False)
    return Sentence(tuple(found.ids), tuple(found.offsets))


def parameters(api: Api) -> Sequence[Parameter]:
    """Return the parameters that are read: the required ones first, a few in all."""
    return api.parameters[:MOST_PARAMETERS]


def head_text(api: Api) -> str:
    """Return what is read of an API but for its parameters."""
    return f"{_spoken(api.tool)}: {_spoken(api.name)}. {api.description.strip()[:300]}"


def parameter_text(parameter: Parameter, *, required: bool) -> str:
    """Return what is read of a parameter."""
    listed = f" ({', '.join(parameter.enum[:LISTED])})" if parameter.enum else ""
    text = f"{_named(parameter, required)}{listed}: {parameter.description.strip()[:120]}"
    return text if parameter.description.strip() else f"{text} {parameter.type.lower()}"


def listed_places(parameter: Parameter, *, required: bool) -> tuple[tuple[int, int], ...]:
    """Return where in the parameter's text its allowed values stand."""
    at = len(_named(parameter, required)) + len(" (")
    found = []
    for value in parameter.enum[:LISTED]:
        found.append((at, at + len(value)))
        at += len(value) + len(", ")
    return tuple(found)


def pair(
    document: Document,
    text: Sentence,
    clause: tuple[int, int] | None,
    facts: Sequence[tuple[Sentence, Sentence]] = (),
) -> PairedTokens:
    """Return an API's ``document`` and a text in one row of tokens.

    ``clause`` is where in the text the clause stands, in characters, None for the whole text
    (``facts`` have no room then); ``facts`` are names and values. What is too long is cut: of a
    text what is far from the clause, or the end.
    """
    ids = [_CLS, *document.head.ids[:HEAD_TOKENS]]
    markers: list[int] = [0]
    options: list[tuple[tuple[int, int] | None, ...]] = [()]
    room = PARAMETERS_TOKENS
    for one, listed in zip(document.parameters, document.listed, strict=True):
        most = min(LISTING_TOKENS if listed else PARAMETER_TOKENS, room)
        room -= min(most, len(one.ids))
        markers.append(len(ids))
        options.append(tuple(_tokens(one, place, most, len(ids) + 1) for place in listed))
        ids += [MARKER, *one.ids[:most]]
    ids.append(_SEP)
    kinds = [DOCUMENT] * len(ids)
    sources: list[tuple[int, int, int] | None] = [None] * len(ids)
    first, last = clause or (0, 0)
    begin, most = (_window(text, clause), TEXT_TOKENS) if clause else (0, WHOLE_TOKENS)
    for token, (at, end) in zip(text.ids[begin : begin + most], text.places[begin:], strict=False):
        ids.append(token)
        kinds.append(CLAUSE if first <= at and end <= last else TEXT)
        sources.append((0, at, end))
    ids.append(_SEP)
    kinds.append(TEXT)
    sources.append(None)
    room = FACTS_TOKENS if clause else 0
    for number, (name, value) in enumerate(facts, start=1):
        tokens = [*name.ids[:8], *value.ids[:FACT_TOKENS], _SEP]
        room -= len(tokens)
        if room < 0:
            break
        ids += tokens
        kinds += [FACT] * len(tokens)
        sources += [None] * len(name.ids[:8])
        sources += [(number, at, end) for at, end in value.places[:FACT_TOKENS]]
        sources.append(None)
    return PairedTokens(tuple(ids), tuple(kinds), tuple(markers), tuple(sources), tuple(options))


def document(tokenizer: Any, api: Api) -> Document:
    """Return an API in tokens: its head and its parameters, in the order of ``parameters``."""
    told = [(one, at < len(api.required)) for at, one in enumerate(parameters(api))]
    return Document(
        tokenise(tokenizer, head_text(api)),
        tuple(tokenise(tokenizer, parameter_text(one, required=must)) for one, must in told),
        tuple(listed_places(one, required=must) for one, must in told),
    )


def targets(
    paired: PairedTokens, spans: Mapping[int, tuple[int, int, int]]
) -> dict[int, tuple[int, int]]:
    """Return marker -> (first token, last token) of spans (source, begin, end) of characters.

    A span that was cut off, or does not end with a token, is left out.
    """
    found = {}
    for marker, (source, begin, end) in spans.items():
        inside = [
            at
            for at, place in enumerate(paired.sources)
            if place is not None and place[0] == source and place[1] >= begin and place[2] <= end
        ]
        if inside and _covers(paired, inside, begin, end):
            found[marker] = (inside[0], inside[-1])
    return found


def _covers(paired: PairedTokens, inside: Sequence[int], begin: int, end: int) -> bool:
    """Whether the tokens inside begin and end where the span does."""
    first, last = paired.sources[inside[0]], paired.sources[inside[-1]]
    return first is not None and last is not None and (first[1], last[2]) == (begin, end)


def _tokens(
    sentence: Sentence, place: tuple[int, int], most: int, offset: int
) -> tuple[int, int] | None:
    """Return the first and last token of a place in a sentence that begins at ``offset``."""
    inside = [
        at
        for at, (begin, end) in enumerate(sentence.places[:most])
        if place[0] <= begin and end <= place[1]
    ]
    whole = inside and sentence.places[inside[-1]][1] == place[1]
    return (offset + inside[0], offset + inside[-1]) if whole else None


def _named(parameter: Parameter, required: bool) -> str:
    return f"{_spoken(parameter.name)}{'' if required else ' optional'}"


def _window(text: Sentence, clause: tuple[int, int]) -> int:
    """Return the first token of a text that is read."""
    if len(text.ids) <= TEXT_TOKENS:
        return 0
    first = next((at for at, place in enumerate(text.places) if place[0] >= clause[0]), 0)
    last = len(text.ids) - TEXT_TOKENS
    return max(0, min(first - _BEFORE, last)) if first + TEXT_TOKENS // 2 > TEXT_TOKENS else 0


def _spoken(text: str) -> str:
    return " ".join(words(text))
