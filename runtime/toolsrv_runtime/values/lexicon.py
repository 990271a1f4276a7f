"""Words of numbers, fractions, currencies and units, as alternatives of regular expressions.

Data only: who reads the words that these patterns find is not known here.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from fractions import Fraction

ONES = "one|two|three|four|five|six|seven|eight|nine"
TO_TWELVE = f"{ONES}|ten|eleven|twelve"
TEENS = "ten|eleven|twelve|thirteen|fourteen|fifteen|sixteen|seventeen|eighteen|nineteen"
TENS = "twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety"
NUMBER_WORDS = f"zero|{ONES}|{TEENS}|{TENS}|hundred|thousand|million"
ORDINALS = ("second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")

_TO_TWENTY = (
    "first", *ORDINALS, "eleventh", "twelfth", "thirteenth", "fourteenth", "fifteenth", "sixteenth",
    "seventeenth", "eighteenth", "nineteenth", "twentieth",
)  # fmt: skip
DAY_ORDINALS = {name: at for at, name in enumerate(_TO_TWENTY, start=1)}
DAY_ORDINALS |= {f"twenty {name}": 20 + at for name, at in DAY_ORDINALS.items() if at < 10}
DAY_ORDINALS |= {"thirtieth": 30, "thirty first": 31}
"""Days of a month by their ordinals, with a blank between two words."""
DAY_ORDINAL_PATTERN = "|".join(
    one.replace(" ", "[ -]") for one in sorted(DAY_ORDINALS, key=len, reverse=True)
)


FRACTION_SIGNS: Mapping[str, Fraction] = {
    sign: Fraction(unicodedata.numeric(sign)).limit_denominator(10)
    for sign in map(chr, (*range(0xBC, 0xBF), *range(0x2150, 0x215F)))
}
FRACTION_SIGN_PATTERN = f"[{''.join(FRACTION_SIGNS)}]"
"""Pattern of one of them."""


CURRENCY_NAMES = (
    r"(?:(?:(?:us|american|canadian|australian|hong kong|new zealand|singapore) )?dollars?"
    r"|euros?|(?:british )?pounds?(?: sterling)?|(?:japanese )?yen|(?:swiss )?francs?"
    r"|(?:indian )?rupees?|(?:chinese )?yuan|(?:mexican )?pesos?"
    r"|(?:swedish |norwegian |danish )?(?:krona|kronor|krone|kroner)|zlot(?:y|ys)|(?:south korean )?won"
    r"|(?:[a-z]+(?:ese|ian|ish|an|i) )?(?:dongs?|bahts?|rands?|reais|she[kq]els?|liras?|dirhams?"
    r"|ri(?:y)?als?|ringgits?|rupiahs?|forints?|korunas?|hryvnias?|nairas?|cedis?|shillings?|takas?"
    r"|kyats?|tugriks?|tenges?|dinars?|dirams?|roubles?|rubles?|quetzals?|lempiras?|birrs?|kwachas?"
    r"|bolivianos?|guaran[ií]s?|leva?|koruny))"
)
"""Names of currencies, of a country or without one."""

CURRENCY_MARKS = r"(?:[€$£]|(?:usd|eur|gbp|chf|dollars?|euros?|pounds?|francs?|bucks|quid)\b)"
"""What stands before or behind an amount of money where it is told at all."""


_METRE = r"met(?:er|re)s?"
UNITS = {
    "kilometer_per_hour": rf"km ?/ ?h|kmh|kph|(?:km|kilo{_METRE}) (?:per|an) hour",
    "mile_per_hour": r"mph|mi ?/ ?h|miles (?:per|an) hour",
    "meter_per_second": rf"m ?/ ?s|mps|{_METRE} (?:per|a) second",
    "knot": r"knots?|kn|kts?",
    "degree_Celsius": r"°? ?c|(?:degrees? )?(?:celsius|centigrade)|degrees? c",
    "degree_Fahrenheit": r"°? ?f|(?:degrees? )?fahrenheit|degrees? f",
    "kelvin": r"kelvins?",
    "kilogram": r"kgs?|kilos?|kilograms?",
    "gram": r"g|grams?",
    "pound": r"lbs?|pounds?",
    "ounce": r"oz|ounces?",
    "stone": r"stones?",
    "kilometer": rf"kms?|kilo{_METRE}",
    "meter": rf"m|{_METRE}",
    "centimeter": rf"cm|centi{_METRE}",
    "millimeter": rf"mm|milli{_METRE}",
    "mile": r"mi|miles?",
    "nautical_mile": r"nmi|nautical miles?",
    "yard": r"yd|yards?",
    "foot": r"ft|feet|foot",
    "inch": r"inch(?:es)?",
    "liter": r"l|lit(?:er|re)s?",
    "second": r"secs?|seconds?",
    "minute": r"min|mins|minutes?",
    "hour": r"h|hrs?|hours?",
    "day": r"days?",
    "week": r"weeks?",
    "month": r"months?",
    "year": r"yrs?|years?",
    "milliliter": r"ml|millilit(?:er|re)s?",
    "gallon": r"gal|gallons?",
    "watt": r"w|watts?",
    "kilowatt": r"kw|kilowatts?",
    "megawatt": r"megawatts?",
    "volt": r"v|volts?",
    "kilovolt": r"kv|kilovolts?",
    "millivolt": r"mv|millivolts?",
    "ampere": r"(?-i:A)|amps?|amperes?",
    "milliampere": r"ma|milliamps?|milliamperes?",
    "ampere_hour": r"ah|amp(?:ere)?[- ]hours?",
    "milliampere_hour": r"mah|milliamp(?:ere)?[- ]hours?",
}
"""pint's name of a unit, and how people write it."""

_MEASURES = (
    {"kilometer_per_hour", "mile_per_hour", "meter_per_second", "knot"},
    {"degree_Celsius", "degree_Fahrenheit", "kelvin"},
    {"kilogram", "gram", "pound", "ounce", "stone"},
    {"kilometer", "meter", "centimeter", "millimeter", "mile", "nautical_mile", "yard", "foot", "inch"},
    {"liter", "milliliter", "gallon"},
    {"second", "minute", "hour", "day", "week", "month", "year"},
    {"watt", "kilowatt", "megawatt"},
    {"volt", "kilovolt", "millivolt"},
    {"ampere", "milliampere"},
    {"ampere_hour", "milliampere_hour"},
)  # fmt: skip


def same_dimension(one: str, other: str) -> bool:
    """Whether two units, by name, measure the same: nothing has to be loaded to know that."""
    return any({one, other} <= measure for measure in _MEASURES)


def unit_pattern(*units: str) -> str:
    """Return how people write these units, as one alternative."""
    return "|".join(UNITS[unit] for unit in units)
