"""Keys that a model keeps of responses, against the response schemas that ToolBench publishes.

Example responses are the ``template_response`` of ToolBench's query files, which have a response's
keys and the types of its values; the schemas are those of an imported catalog. A published schema
that fits no key of the example, or an example with few keys, is left out and counted.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from toolsrv_catalogs.layout import api_place
from toolsrv_lab.evaluation.statistics import Mean, Share, mean, share
from toolsrv_registry import names, wellformed
from toolsrv_registry.api import Api
from toolsrv_registry.errors import DataError
from toolsrv_runtime.calls.compress import filter_response
from toolsrv_runtime.calls.key_selection import savings, select_keys
from toolsrv_runtime.calls.response_keys import FEWEST_KEYS, ResponseKeys, response_keys
from toolsrv_runtime.contract.models import ChatModel
from toolsrv_runtime.files import read_text
from toolsrv_runtime.stop import Stop

MOST_BYTES = 200_000_000
_LENGTH = "_list_length"
"""Key by which a query file says how long a list was."""

NO_SCHEMA = "no published schema"
FEW_KEYS = "fewer than four keys"
NO_FIT = "the published schema names none of the example's keys"
UNKNOWN = "not in the catalogs"


@dataclass(frozen=True, slots=True)
class Pair:
    """An API's example response and the paths that its published schema keeps."""

    api: Api
    example: Any
    keys: ResponseKeys
    schema: Any
    published: frozenset[str]


class KeyResult(BaseModel):
    """What a model kept for one API: counts of key paths, tokens of the example."""

    model_config = ConfigDict(frozen=True)

    id: str
    keys: int
    published: int
    kept: int
    both: int
    problem: str
    tokens: int
    tokens_published: int
    tokens_kept: int
    seconds: float
    generated: int


class KeyFigures(BaseModel):
    """Over some APIs: ``recall`` of the published keys, ``precision`` of those kept.

    ``base`` is the precision of keeping all keys; ``saved`` and ``saved_published`` are shares of the
    examples' tokens.
    """

    model_config = ConfigDict(frozen=True)

    apis: int
    failed: int
    recall: Share
    precision: Share
    base: Share
    saved: Share
    saved_published: Share
    seconds: Mean
    generated: Mean


def read_examples(path: Path) -> dict[str, Any]:
    """Return the example responses of a query file by API id.

    Raises:
        DataError: the file cannot be read, or is no query file of ToolBench.
    """
    hint = "give a query file of ToolBench with template_response, such as G1_query.json"
    try:
        value = wellformed.loads(read_text(path, MOST_BYTES, hint=hint))
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path} is no JSON: {error}", hint=hint) from error
    found: dict[str, Any] = {}
    for query in value if isinstance(value, list) else []:
        for one in _entries(query):
            words = [str(one.get(key, "")) for key in ("category_name", "tool_name", "api_name")]
            template = one.get("template_response")
            if isinstance(template, dict | list) and template:
                place = api_place(names.standardize_category(words[0]), words[1], words[2])
                found.setdefault(place, _without_lengths(template))
    if not found:
        raise DataError(f"{path} has no example responses", hint=hint)
    return found


def _entries(query: Any) -> Iterable[dict[str, Any]]:
    entries = query.get("api_list") if isinstance(query, dict) else None
    return [one for one in entries if isinstance(one, dict)] if isinstance(entries, list) else []


def _without_lengths(value: Any) -> Any:
    if wellformed.too_deep(value):
        return None
    if isinstance(value, dict):
        return {key: _without_lengths(one) for key, one in value.items() if key != _LENGTH}
    return [_without_lengths(one) for one in value] if isinstance(value, list) else value


def read_pairs(
    examples: Mapping[str, Any], find: Callable[[str], tuple[Api, Any] | None]
) -> tuple[list[Pair], Counter[str]]:
    """Return the pairs that can be judged, and how many examples are left out by reason.

    ``find`` returns an API of the catalogs and its published schema.
    """
    pairs, left_out = [], Counter[str]()
    for place, example in examples.items():
        known = find(place)
        one = UNKNOWN if known is None else _pair(known[0], example, known[1])
        if isinstance(one, str):
            left_out[one] += 1
        else:
            pairs.append(one)
    return pairs, left_out


def _pair(api: Api, example: Any, schema: Any) -> Pair | str:
    if not schema:
        return NO_SCHEMA
    keys = response_keys([example])
    if len(keys.types) < FEWEST_KEYS:
        return FEW_KEYS
    left = response_keys([filter_response(example, schema)])
    published = frozenset(left.types) & frozenset(keys.types)
    return Pair(api, example, keys, schema, published) if published else NO_FIT


def choose(model: ChatModel, pair: Pair, *, seed: int, stop: Stop) -> KeyResult | None:
    """Return what a model keeps for one API, None when ``stop`` was set. Raises ModelError."""
    start = time.monotonic()
    chosen = select_keys(model, pair.api, pair.keys, pair.example, seed=seed, stop=stop)
    if chosen is None:
        return None
    kept = chosen.kept or frozenset(pair.keys.types)  # without a schema all keys stay
    ours = savings(model, pair.example, pair.keys.schema(kept))
    theirs = savings(model, pair.example, pair.schema)
    return KeyResult(
        id=pair.api.id,
        keys=len(pair.keys.types),
        published=len(pair.published),
        kept=len(kept),
        both=len(kept & pair.published),
        problem=chosen.problem,
        tokens=ours.before,
        tokens_published=theirs.after,
        tokens_kept=ours.after,
        seconds=round(time.monotonic() - start, 4),
        generated=chosen.generated,
    )


def figures(results: Sequence[KeyResult]) -> KeyFigures:
    """Return the figures over some results."""

    def ratio(part: Callable[[KeyResult], int], whole: Callable[[KeyResult], int]) -> Share:
        count, of = sum(map(part, results)), sum(map(whole, results))
        return share([True] * count + [False] * (of - count))

    return KeyFigures(
        apis=len(results),
        failed=sum(bool(one.problem) for one in results),
        recall=ratio(lambda one: one.both, lambda one: one.published),
        precision=ratio(lambda one: one.both, lambda one: one.kept),
        base=ratio(lambda one: one.published, lambda one: one.keys),
        saved=ratio(lambda one: max(0, one.tokens - one.tokens_kept), lambda one: one.tokens),
        saved_published=ratio(
            lambda one: max(0, one.tokens - one.tokens_published), lambda one: one.tokens
        ),
        seconds=mean([one.seconds for one in results]),
        generated=mean([one.generated for one in results]),
    )
