"""Needs with values: the needed API, the places of its values; needs of invented APIs."""

from __future__ import annotations

import random
import re
import string
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from toolsrv_lab.instructions.errands import MARK, Pools, written
from toolsrv_registry.api import Api, Parameter
from toolsrv_registry.words import words

# So many needs keep the values that they were written with.
_OWN = 0.4
_ODD = 0.12
_CODE = re.compile(r"(?:^|_)(?:id|code|key|token|hash|reference|number|sku)s?$|Id$|ID$")


@dataclass(frozen=True, slots=True)
class ValuedNeed:
    """One need: its API, the text, and parameter -> (value as the API takes it, as it was said).

    ``referred`` are the parameters whose value is not in the text but in an earlier result.
    """

    api: Api
    text: str
    values: Mapping[str, tuple[str, str]]
    referred: frozenset[str] = frozenset()


class Needs:
    """All marked needs of some APIs, with a pool of values per parameter. Seeded by its caller."""

    def __init__(self, apis: Iterable[Api]) -> None:
        self._apis = {api.id: api for api in apis if api.id in written()}
        self._own: dict[tuple[str, str], list[tuple[str, str]]] = defaultdict(list)
        self._all: dict[str, list[tuple[str, str]]] = defaultdict(list)
        for api in self._apis.values():
            for need in written()[api.id]:
                for match in MARK.finditer(need):
                    value = _pair(match)
                    self._own[api.id, match[1]].append(value)
                    self._all[match[1].lower()].append(value)

    @property
    def apis(self) -> list[Api]:
        """The APIs that there are needs for."""
        return list(self._apis.values())

    @property
    def pools(self) -> Pools:
        """(API id, parameter) -> the values that its needs state, as the API takes them and said."""
        return self._own

    def tell(self, api: Api, rng: random.Random, *, keep: bool = False) -> ValuedNeed:
        """Return one of the API's needs, with its own values or others."""
        need = rng.choice(written()[api.id])
        own = keep or rng.random() < _OWN
        values: dict[str, tuple[str, str]] = {}

        def value_words(match: re.Match[str]) -> str:
            pair = _pair(match) if own else self._other(api, match, rng)
            values[match[1]] = pair
            return pair[1]

        text = MARK.sub(value_words, need)
        return ValuedNeed(api, text, values)

    def _other(self, api: Api, match: re.Match[str], rng: random.Random) -> tuple[str, str]:
        parameter = next((one for one in api.parameters if one.name == match[1]), None)
        if parameter is None or parameter.enum or match[0].find("{") < 0:
            return _pair(match)
        if rng.random() < _ODD and _CODE.search(match[1]) and api.id.count("/") == 2:
            code = "".join(
                rng.choices(string.ascii_uppercase + string.digits, k=rng.randrange(4, 11))
            )
            return (code, code) if not match[2].isdigit() else (str(rng.randrange(10**6)),) * 2
        near = self._own[api.id, match[1]]
        pool = near if len(near) > 6 else self._all[match[1].lower()]
        return rng.choice(pool)


def _pair(match: re.Match[str]) -> tuple[str, str]:
    return match[2], match[2] if match[3] is None else match[3]


_APIS, _POOL = 14, 30
_KEYS = (
    "id", "name", "city", "date", "code", "email", "amount", "user", "text", "query", "number",
    "country", "start", "end", "type", "key", "value", "limit", "year", "currency", "lang", "order",
)  # fmt: skip
_VERBS = ("get", "find", "list", "check", "convert", "search", "calculate", "fetch", "make", "show")
_FRAMES = (
    "{asks} the {words}{told}", "{asks} me the {words}{told}", "what is the {words}{told}",
    "{words}{told}", "which {words} is there{told}", "I need the {words}{told}",
    "{words} please{told}", "is there any {words}{told}", "how about the {words}{told}",
    "I would like to know the {words}{told}", "tell me what the {words}{told} is",
    "do you have the {words}{told}", "my {words}{told}", "{told}, what is the {words}",
)  # fmt: skip
_ASKS = ("get", "give", "show", "find", "look up", "check", "fetch", "please get", "can you find")
_TIES = (" for {}", " of {}", " with {key} {}", " where {key} is {}", " ({key} {})", ", {key}: {}",
         " at {}", " from {}", " using {} as the {key}")  # fmt: skip
_GLUE = (" ", " ", " and ", " or ", " of the ", " in ")
_MONTHS = ("January", "March", "April", "June", "August", "October", "December")


def document_words(apis: Sequence[Api]) -> list[str]:
    """Return the words of the APIs' names and descriptions that may stand in an invented one."""
    found = {one for api in apis for one in words(f"{api.name} {api.description}")}
    return sorted(one for one in found if one.isascii() and one.isalpha() and 3 < len(one) < 11)


class Invented:
    """Fourteen invented APIs and their needs, as ``Needs`` gives those that people wrote."""

    pools: ClassVar[Pools] = {}

    def __init__(self, known: Sequence[str], rng: random.Random) -> None:
        """Make them of ``known`` words and of words that nobody knows."""
        made = rng.random()
        pool = {
            rng.choice(known) if known and rng.random() > made else made_up(rng)
            for _ in range(_POOL)
        }
        self._words: dict[str, list[str]] = {}
        self.apis: list[Api] = []
        for _ in range(_APIS):
            own = rng.sample(sorted(pool), 4)
            api = _api(own, rng)
            if api.id not in self._words:
                self._words[api.id] = own
                self.apis.append(api)

    def tell(self, api: Api, rng: random.Random) -> ValuedNeed:
        """Return a need that shares with the API words that no other one has together."""
        own = self._words[api.id]
        others = [set(found) for key, found in self._words.items() if key != api.id]
        said = rng.sample(own, rng.choice((1, 1, 2, 2, 3)))
        while any(set(said) <= one for one in others) and len(said) < len(own):
            said.append(next(one for one in own if one not in said))
        values: dict[str, tuple[str, str]] = {}
        told = ""
        for parameter in api.parameters:
            if parameter in api.required or rng.random() < 0.4:
                value = _value(rng)
                values[parameter.name] = (value, value)
                told += rng.choice(_TIES).format(value, key=parameter.name.replace("_", " "))
        asked = rng.choice(_GLUE).join(_bent(one, rng) for one in said)
        text = rng.choice(_FRAMES).format(asks=rng.choice(_ASKS), words=asked, told=told)
        return ValuedNeed(api, " ".join(text.strip(" ,").split()), values)


def made_up(rng: random.Random) -> str:
    """Return a word of syllables that hardly any language has."""
    syllables: list[Callable[[], str]] = [
        lambda: rng.choice("bcdfghjklmnprstvwz") + rng.choice("aeiou"),
        lambda: rng.choice("bdfgklmnprst") + rng.choice("aeiou") + rng.choice("lmnrst"),
    ]
    return "".join(rng.choice(syllables)() for _ in range(rng.choice((2, 2, 3))))


def _api(own: Sequence[str], rng: random.Random) -> Api:
    name = f"{rng.choice(_VERBS)} {own[0]} {own[1]}" if rng.random() < 0.6 else f"{own[0]} {own[1]}"
    tool = made_up(rng)
    keys = rng.sample([*_KEYS, made_up(rng), made_up(rng)], rng.choice((0, 1, 1, 2, 2, 3)))
    parameters = [Parameter(name=key) for key in keys]
    needed = rng.randrange(len(keys) + 1)
    rest = " ".join(own[2:]) if rng.random() < 0.5 else f"{own[2]} by {own[3]}"
    description = f"{rng.choice(_VERBS).capitalize()} the {own[0]} {rest}"
    key = re.sub(r"\W+", "_", name)
    return Api(
        id=f"Invented/{tool}/{key}",
        category="Invented",
        tool=tool,
        name=name,
        description=description,
        required=tuple(parameters[:needed]),
        optional=tuple(parameters[needed:]),
    )


def _bent(word: str, rng: random.Random) -> str:
    """Return the word, now and then in another form or with a capital."""
    bent = rng.random()
    if bent < 0.08:
        return f"{word}s"
    if bent < 0.12:
        return f"{word.rstrip('e')}ing"
    return word.capitalize() if bent < 0.2 else word


def _value(rng: random.Random) -> str:
    kind = rng.random()
    if kind < 0.25:
        size = 10 ** rng.randrange(1, 6)
        return str(rng.choice((rng.randrange(size), round(rng.random() * size, 2))))
    if kind < 0.4:
        return "".join(rng.choices("ABCDEFGHKLMNPRSTUVWXYZ0123456789", k=rng.randrange(3, 9)))
    if kind < 0.5:
        return f"{rng.randrange(1, 29)} {rng.choice(_MONTHS)} {rng.randrange(1950, 2035)}"
    if kind < 0.55:
        return f"{made_up(rng)}@{made_up(rng)}.com"
    return " ".join(made_up(rng).capitalize() for _ in range(rng.choice((1, 1, 2, 3))))
