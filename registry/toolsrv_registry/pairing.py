"""An API and a text side by side, in the tokens that the matcher takes.

First the API: name and description, then each parameter behind a marker; behind it the text, and
what earlier calls answered. A token's kind says which of these it belongs to, and whether it
stands in the clause that is asked about. Shared by the matcher and its training. Pure.
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
HEAD_TOKENS, PARAMETER_TOKENS, TEXT_TOKENS, FACT_TOKENS, FACTS_TOKENS = 48, 20, 160, 24, 88
"""At most 512 in all, as many as the encoder has places for."""

_CLS, _SEP = 101, 102
_BEFORE = 16
"""Tokens in front of the clause that a long text keeps at least."""


@dataclass(frozen=True, slots=True)
class Sentence:
    """A tokenised text: ids, and where in it each token stands (begin, end)."""

    ids: tuple[int, ...]
    places: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Paired:
    """What the matcher reads: ``ids`` and ``kinds`` (tokens,), ``markers`` (parameters,).

    ``sources[i]`` says where token ``i`` is from: (0, begin, end) in the text, (n, begin, end) in
    the n-th fact's value, None for everything else.
    """

    ids: tuple[int, ...]
    kinds: tuple[int, ...]
    markers: tuple[int, ...]
    sources: tuple[tuple[int, int, int] | None, ...]


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
    listed = f" ({', '.join(parameter.enum[:6])})" if parameter.enum else ""
    asked = "" if required else " optional"
    text = f"{_spoken(parameter.name)}{asked}{listed}: {parameter.description.strip()[:120]}"
    return text if parameter.description.strip() else f"{text} {parameter.type.lower()}"


def pair(
    document: tuple[Sentence, Sequence[Sentence]],
    text: Sentence,
    clause: tuple[int, int],
    facts: Sequence[tuple[Sentence, Sentence]] = (),
) -> Paired:
    """Return an API's ``document`` (head, parameters) and a text in one row of tokens.

    ``clause`` is where in the text the clause stands, in characters; ``facts`` are names and
    values. What is too long is cut: of a text what is far from the clause.
    """
    head, marked = document
    ids = [_CLS, *head.ids[:HEAD_TOKENS]]
    markers = []
    for one in marked:
        markers.append(len(ids))
        ids += [MARKER, *one.ids[:PARAMETER_TOKENS]]
    ids.append(_SEP)
    kinds = [DOCUMENT] * len(ids)
    sources: list[tuple[int, int, int] | None] = [None] * len(ids)
    begin = _window(text, clause)
    for token, (at, end) in zip(
        text.ids[begin : begin + TEXT_TOKENS], text.places[begin:], strict=False
    ):
        ids.append(token)
        kinds.append(CLAUSE if clause[0] <= at and end <= clause[1] else TEXT)
        sources.append((0, at, end))
    ids.append(_SEP)
    kinds.append(TEXT)
    sources.append(None)
    room = FACTS_TOKENS
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
    return Paired(tuple(ids), tuple(kinds), tuple(markers), tuple(sources))


def document(tokenizer: Any, api: Api) -> tuple[Sentence, tuple[Sentence, ...]]:
    """Return an API in tokens: its head and its parameters, in the order of ``parameters``."""
    told = tuple(
        tokenise(tokenizer, parameter_text(one, required=at < len(api.required)))
        for at, one in enumerate(parameters(api))
    )
    return tokenise(tokenizer, head_text(api)), told


def targets(
    paired: Paired, spans: Mapping[int, tuple[int, int, int]]
) -> dict[int, tuple[int, int]]:
    """Return parameter -> (first token, last token) of spans (source, begin, end) of characters.

    A span that was cut off, or does not end with a token, is left out.
    """
    found = {}
    for parameter, (source, begin, end) in spans.items():
        inside = [
            at
            for at, place in enumerate(paired.sources)
            if place is not None and place[0] == source and place[1] >= begin and place[2] <= end
        ]
        if inside and _covers(paired, inside, begin, end):
            found[parameter] = (inside[0], inside[-1])
    return found


def _covers(paired: Paired, inside: Sequence[int], begin: int, end: int) -> bool:
    """Whether the tokens inside begin and end where the span does."""
    first, last = paired.sources[inside[0]], paired.sources[inside[-1]]
    return first is not None and last is not None and (first[1], last[2]) == (begin, end)


def _window(text: Sentence, clause: tuple[int, int]) -> int:
    """Return the first token of a text that is read."""
    if len(text.ids) <= TEXT_TOKENS:
        return 0
    first = next((at for at, place in enumerate(text.places) if place[0] >= clause[0]), 0)
    last = len(text.ids) - TEXT_TOKENS
    return max(0, min(first - _BEFORE, last)) if first + TEXT_TOKENS // 2 > TEXT_TOKENS else 0


def _spoken(text: str) -> str:
    return " ".join(words(text))
