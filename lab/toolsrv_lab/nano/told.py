"""Needs with values in them: who wants what from which API, and where a person said it.

A marked need (``instructions.written``) gets other values of its own kind half of the time, taken
from the other needs of the same parameter, so that a model learns to copy and not to recite.
"""

from __future__ import annotations

import random
import re
import string
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from toolsrv_lab.instructions.errands import Pools
from toolsrv_lab.instructions.written import MARK, written
from toolsrv_registry.api import Api

# So many needs keep the values that they were written with.
_OWN = 0.4
_ODD = 0.12
_CODE = re.compile(r"(?:^|_)(?:id|code|key|token|hash|reference|number|sku)s?$|Id$|ID$")


@dataclass(frozen=True, slots=True)
class Told:
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

    def tell(self, api: Api, rng: random.Random, *, keep: bool = False) -> Told:
        """Return one of the API's needs, with its own values or others."""
        need = rng.choice(written()[api.id])
        own = keep or rng.random() < _OWN
        values: dict[str, tuple[str, str]] = {}

        def said(match: re.Match[str]) -> str:
            pair = _pair(match) if own else self._other(api, match, rng)
            values[match[1]] = pair
            return pair[1]

        text = MARK.sub(said, need)
        return Told(api, text, values)

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
