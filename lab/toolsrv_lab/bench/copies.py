"""A catalog made larger: copies with other names and other words, the same for the same seed.

A copy keeps the shape of the catalog (tools, parameters, lengths) and replaces some of the words
of every name and description by words drawn from all of its descriptions, so that each text is
new to the encoder, to the word index and to the folding of near-duplicates. ``NoisyEncoder``
spares the encoding where only the size matters.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence

import numpy as np

from toolsrv_registry import names
from toolsrv_registry.api import Api, Catalog, Tool
from toolsrv_registry.documents import document_text
from toolsrv_registry.encoder import Encoder, Progress, Vectors

_WORD = re.compile(r"[A-Za-z]{4,}")
# This share of the words of a text is replaced.
_SHARE = 0.35
# A copy's vector has about this cosine with its original.
_CLOSENESS = 0.75
_POOL = 100_000


def pool(catalog: Catalog) -> list[str]:
    """Return the words of all descriptions as often as they occur, the first 100,000."""
    found: list[str] = []
    for api in catalog.apis:
        found += _WORD.findall(api.description)
        if len(found) >= _POOL:
            break
    return found[:_POOL] or ["word"]


def copy_of(catalog: Catalog, number: int, words: Sequence[str], seed: int) -> Catalog:
    """Return the copy of that number: the same tools and APIs in the same order, other texts."""
    chance = random.Random(f"{seed}/{number}")
    tools = tuple(_tool(tool, number, words, chance) for tool in catalog.tools)
    return Catalog(name=f"{catalog.name}-{number}", tools=tools)


def originals(catalog: Catalog, copy: Catalog) -> dict[str, str]:
    """Return for each text of a copy that is encoded the text that it was made from."""
    pairs = zip(copy.apis, catalog.apis, strict=True)
    return {document_text(new): document_text(old) for new, old in pairs}


class NoisyEncoder:
    """An encoder that knows the vectors of some texts, and gives their copies nearby ones."""

    def __init__(
        self, encoder: Encoder, known: Mapping[str, Vectors], copies: Mapping[str, str], seed: int
    ) -> None:
        self._encoder = encoder
        self._known = known
        self._copies = copies
        self._chance = np.random.default_rng(seed)

    @property
    def name(self) -> str:
        """That of the encoder it stands for."""
        return self._encoder.name

    @property
    def digest(self) -> str:
        """That of the encoder it stands for, which then searches the index."""
        return self._encoder.digest

    @property
    def dimensions(self) -> int:
        """The length of a vector."""
        return self._encoder.dimensions

    def check(self) -> None:
        """Raise as the encoder that it stands for."""
        self._encoder.check()

    def encode(self, texts: Sequence[str], *, progress: Progress | None = None) -> Vectors:
        """Return unit vectors; raises KeyError for a text that is neither known nor a copy."""
        found = np.stack([self._known[self._copies.get(text, text)] for text in texts])
        noise = self._chance.standard_normal(found.shape, dtype=np.float32)
        noise *= np.sqrt(1 / _CLOSENESS**2 - 1) / np.linalg.norm(noise, axis=1, keepdims=True)
        noise[[text not in self._copies for text in texts]] = 0.0
        found = (found + noise).astype(np.float32)
        if progress is not None:
            progress(len(texts), len(texts))
        result: Vectors = found / np.linalg.norm(found, axis=1, keepdims=True)
        return result


def _tool(tool: Tool, number: int, words: Sequence[str], chance: random.Random) -> Tool:
    # The number keeps a name from being that of another copy, whatever the words.
    name = f"{_varied(tool.name, words, chance)} {chance.choice(words)} {number}"
    about = _varied(tool.description, words, chance)
    apis = tuple(
        _api(api, at, name, about, words, chance) for at, api in enumerate(tool.apis, start=1)
    )
    return Tool(
        category=tool.category,
        name=f"{name} {_serial(tool.apis)}",
        description=about,
        home_url=tool.home_url,
        host=tool.host,
        apis=apis,
    )


def _api(
    api: Api, at: int, tool: str, about: str, words: Sequence[str], chance: random.Random
) -> Api:
    name = f"{_varied(api.name, words, chance)} {at}"
    full = f"{tool} {_serial((api,))}"
    return api.model_copy(
        update={
            "id": f"{api.category}/{names.standardize(full)}/{names.api_name(name)}",
            "tool": full,
            "name": name,
            "description": _varied(api.description, words, chance),
            "tool_description": about if api.tool_description else "",
        }
    )


def _serial(apis: Sequence[Api]) -> str:
    """Return the original tool's key, which makes two copied tools two."""
    return apis[0].id.split("/")[1] if apis else ""


def _varied(text: str, words: Sequence[str], chance: random.Random) -> str:
    def other(found: re.Match[str]) -> str:
        return chance.choice(words) if chance.random() < _SHARE else found.group()

    return _WORD.sub(other, text)
