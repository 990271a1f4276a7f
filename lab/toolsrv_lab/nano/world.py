"""What APIs answer while episodes are written: the catalog that ships for real, others invented.

An invented answer is a small flat object with names that fit and values that people have used for
parameters of such names. Failures are of the kinds that APIs really give. Seeded by its caller.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from toolsrv_registry.api import Api
from toolsrv_registry.words import words
from toolsrv_runtime.calls.caller import Caller, default_caller

_FIELDS = [
    "id",
    "name",
    "title",
    "status",
    "price",
    "total",
    "score",
    "rank",
    "rating",
    "city",
    "country",
    "date",
    "year",
    "count",
    "code",
    "email",
    "phone",
    "url",
    "author",
    "category",
    "amount",
    "balance",
    "temperature",
    "humidity",
    "wind",
    "population",
    "distance",
    "duration",
    "level",
    "result",
    "value",
    "type",
    "symbol",
    "currency",
    "winner",
    "team",
    "owner",
    "address",
    "reference",
    "order_id",
    "user_id",
    "tracking_number",
    "capital",
    "speed",
    "size",
    "version",
    "language",
    "genre",
    "length",
    "weight",
]
_FAILURES = (
    "not found", "rate limit exceeded", "API key invalid", "timeout", "service unavailable",
    "internal server error", "unauthorized", "no data", "this endpoint is disabled", "bad gateway",
    "you are not subscribed to this API", "the service is down", "request failed", "error 500",
)  # fmt: skip
_SEED = "seed"


@dataclass(frozen=True, slots=True)
class Answer:
    """One response; ``error`` is empty exactly when the call succeeded."""

    response: Any
    error: str = ""


class World:
    """Answers calls. Use as a context manager."""

    def __init__(self, real: Sequence[Api]) -> None:
        self._real = {api.id for api in real}
        self._loop = asyncio.new_event_loop()
        self._caller: Caller = default_caller()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the caller and its event loop; not from a thread whose loop runs."""
        self._loop.run_until_complete(self._caller.aclose())
        self._loop.close()

    def is_real(self, api: Api) -> bool:
        """Whether the API is called rather than played."""
        return api.id in self._real

    def call(
        self, api: Api, arguments: Mapping[str, str], rng: random.Random, *, with_field: str = ""
    ) -> Answer:
        """Return what the API answers; an invented answer has ``with_field``.

        A real one that draws by lot is given a seed, so that the caller's seed says it all.
        """
        if not self.is_real(api):
            return Answer(_invented(api, rng, with_field))
        seeded = _seeded(api, arguments, rng)
        result = self._loop.run_until_complete(self._caller.call(api, seeded))
        return Answer(result.response, result.error)

    def failure(self, rng: random.Random) -> Answer:
        """Return the answer of an API that fails."""
        said = rng.choice(_FAILURES)
        body = rng.choice(({"error": said}, {"message": said}, {"error": said, "response": ""}))
        return Answer(body, rng.choice(("", "HTTP status 503", "HTTP status 404")) or said)


def _seeded(api: Api, arguments: Mapping[str, str], rng: random.Random) -> Mapping[str, str]:
    if _SEED in arguments or not any(one.name == _SEED for one in api.optional):
        return arguments
    # Looked at ahead and not taken: which API is called must not move the caller's next draw.
    ahead = random.Random()
    ahead.setstate(rng.getstate())
    return {**arguments, _SEED: str(ahead.randrange(2**16))}


def _invented(api: Api, rng: random.Random, with_field: str) -> Any:
    own = [word for word in words(api.name) if word.isalpha() and len(word) > 2]
    names = rng.sample(_FIELDS, rng.randrange(1, 4))
    if own and rng.random() < 0.4:
        names.append(rng.choice(own))
    if with_field:
        names.insert(rng.randrange(len(names) + 1), with_field)
    body: Any = {name: _value(name, rng) for name in dict.fromkeys(names)}
    shape = rng.random()
    if shape < 0.15:
        return {rng.choice(("data", "result", "response")): body}
    return [body] if shape < 0.25 else body


def _value(name: str, rng: random.Random) -> Any:
    if name in {"id", "code", "reference", "order_id", "tracking_number", "symbol"}:
        return "".join(rng.choices("ABCDEFGHKLMNPRSTUVWXYZ0123456789", k=rng.randrange(3, 9)))
    kind = rng.random()
    if kind < 0.35:
        return rng.choice((rng.randrange(100), rng.randrange(10_000), round(rng.random() * 500, 2)))
    if kind < 0.5:
        return f"{rng.randrange(1990, 2031)}-{rng.randrange(1, 13):02}-{rng.randrange(1, 29):02}"
    return " ".join(_word(rng).capitalize() for _ in range(rng.choice((1, 1, 2))))


def _word(rng: random.Random) -> str:
    pairs = rng.randrange(2, 4)
    return "".join(rng.choice("bcdfghjklmnprstvwz") + rng.choice("aeiou") for _ in range(pairs))
