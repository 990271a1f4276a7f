"""Password Lab: making and judging secrets, making UUIDs. Library: secrets, random, uuid.

With a seed the result is reproducible and therefore no secret; without one it is.
"""

from __future__ import annotations

import random
import secrets
import string
import uuid
from math import log2
from typing import Annotated

from toolsrv_catalogs.offline.endpoint import Answer, Endpoints
from toolsrv_catalogs.offline.values.number import Seed, tidy, whole
from toolsrv_catalogs.offline.values.words import Line

tool = Endpoints()
_ALPHABETS = (string.ascii_lowercase, string.ascii_uppercase, string.digits, "!#$%&*+-=?@_")
_COMMON = frozenset(
    [
        "password",
        "passw0rd",
        "123456",
        "12345678",
        "123456789",
        "qwerty",
        "abc123",
        "letmein",
        "monkey",
        "dragon",
        "iloveyou",
        "admin",
        "welcome",
        "football",
        "baseball",
        "sunshine",
        "princess",
        "111111",
        "qwerty123",
        "password1",
    ]
)
_SYLLABLES = [
    "ba",
    "be",
    "bo",
    "da",
    "do",
    "du",
    "fa",
    "fi",
    "fo",
    "ga",
    "go",
    "gu",
    "ka",
    "ki",
    "ko",
    "la",
    "le",
    "lu",
    "ma",
    "mi",
    "mo",
    "na",
    "ne",
    "no",
    "pa",
    "pi",
    "po",
    "ra",
    "ri",
    "ru",
    "sa",
    "so",
    "su",
    "ta",
    "ti",
    "to",
    "va",
    "vi",
    "vo",
    "za",
    "zi",
    "zo",
]


def _source(seed: int | None) -> random.Random:
    return secrets.SystemRandom() if seed is None else random.Random(seed)  # noqa: S311 - asked for


@tool.get("/generate")
def generate_password(
    length: Annotated[int, whole(8, 64)] = 16, seed: Seed | None = None
) -> Answer:
    source = _source(seed)
    letters = [source.choice(alphabet) for alphabet in _ALPHABETS]
    letters += [source.choice("".join(_ALPHABETS)) for _ in range(length - len(letters))]
    source.shuffle(letters)
    return {"length": length, "password": "".join(letters)}


@tool.get("/passphrase")
def generate_passphrase(
    words: Annotated[int, whole(3, 12)] = 4, seed: Seed | None = None
) -> Answer:
    source = _source(seed)
    made = ["".join(source.choice(_SYLLABLES) for _ in range(3)) for _ in range(words)]
    return {
        "words": words,
        "passphrase": "-".join(made),
        "entropy_bits": tidy(words * 3 * log2(len(_SYLLABLES)), 1),
    }


@tool.get("/strength")
def password_strength(password: Line) -> Answer:
    pool = sum(len(alphabet) for alphabet in _ALPHABETS if set(alphabet) & set(password))
    bits = len(set(password)) ** 0.5 * len(password) ** 0.5 * log2(max(pool, 10))
    if password.casefold() in _COMMON:
        bits = 5.0
    levels = ((28, "very weak"), (45, "weak"), (60, "reasonable"), (90, "strong"))
    return {
        "length": len(password),
        "strength": next((name for limit, name in levels if bits < limit), "very strong"),
        "entropy_bits": tidy(bits, 1),
        "commonly_used": password.casefold() in _COMMON,
    }


@tool.get("/uuid")
def new_uuid(seed: Seed | None = None) -> Answer:
    value = uuid.UUID(int=_source(seed).getrandbits(128), version=4)
    return {"uuid": str(value), "version": 4}


@tool.get("/uuid/named")
def named_uuid(name: Line) -> Answer:
    return {"name": name, "uuid": str(uuid.uuid5(uuid.NAMESPACE_URL, name)), "version": 5}
