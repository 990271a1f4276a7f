"""Units as people write them, as alternatives of a regular expression."""

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


def alike(one: str, other: str) -> bool:
    """Whether two units, by name, measure the same: nothing has to be loaded to know that."""
    return any({one, other} <= measure for measure in _MEASURES)


def written(*units: str) -> str:
    """Return how people write these units, as one alternative."""
    return "|".join(UNITS[unit] for unit in units)
