"""Prices as people tell them: "one sixty-nine a litre", "nineteen ninety-nine dollars", "31 cents". Pure."""

from __future__ import annotations

import re

from text_to_num import text2num

from toolsrv_registry.api import Api, Parameter
from toolsrv_runtime.planner.reading.measures import converted, is_share, unit_written
from toolsrv_runtime.planner.reading.wish import Wish
from toolsrv_runtime.values import kinds
from toolsrv_runtime.values.facts import words
from toolsrv_runtime.values.lexicon import CURRENCY_MARKS, ONES, TEENS, TENS

_TIMES = "second|minute|hour|day|night|week|month|quarter|year"
_MONEY = (
    r"(?:us |canadian |australian )?dollars?|bucks|euros?|pounds?|quid|francs?|kron(?:a|or|er|e)"
)
_SPOKEN = re.compile(
    rf"(?<![\w-])(?<!\d )(?P<whole>(?:{TENS})(?:[ -](?:{ONES}))?|{TEENS}|{ONES})"
    rf"[ -](?:(?P<cents>(?:{TENS})(?:[ -](?:{ONES}))?|{TEENS})|(?:oh|o)[ -](?P<few>{ONES}))"
    rf" (?:(?P<money>{_MONEY})|(?:an?|per) (?P<time>{_TIMES})|each|apiece|(?:an?|per) \w+)\b",
    re.IGNORECASE,
)
_PRICE = re.compile(r"\b(?:price|cost|fare|fee|bill)\b")
_OFF = re.compile(r"\b(?:discounts?|reduc\w+|off|rebates?)\b", re.IGNORECASE)
_FOR_EACH = re.compile(r"\b(?:price|cost) (?:per|of an?|of one) (\w+)$")
_EACH = re.compile(
    r"(?<![\w.,])[€$£]?\s?(?P<price>\d+(?:\.\d+)?)\s?"
    rf"(?:(?P<cents>cents?|ct|cts|c|¢|pence|p)|{CURRENCY_MARKS})?"
    r"(?:\s?/\s?|\s(?:per|an?|the|for (?:an?|each|every))\s)(?P<unit>[^\W\d_]+)\b",
    re.IGNORECASE,
)
_CENTS = r"\s?(?:cents?|ct|cts|c|¢|pence|p|pennies|penny)(?![\w-])"


def told(parameter: Parameter, api: Api, wish: Wish) -> str:
    """Return the one spoken price of a part, or of what leads up to it, for a price; else "".

    Of the task where the part has fewer numbers than the function requires, with the price.
    """
    called = [*api.required, *(() if parameter in api.required else (parameter,))]
    numbers = [one for one in called if kinds.value_kind(one, api) == "number"]
    if [one for one in numbers if _PRICE.search(words(one.name))] != [parameter]:
        return ""
    if per := _per_unit(parameter, wish):
        return per
    whole = wish.task if len(kinds.find_values("number", wish.part)) < len(numbers) else ""
    for text in (wish.part, wish.context, whole):
        if found := [_read(match) for match in _SPOKEN.finditer(text)]:
            return found[0] if len(found) == 1 else ""
    return ""


def _per_unit(parameter: Parameter, wish: Wish) -> str:
    """Return the one price that is told for a unit, for that of the parameter: "$3.50 a gallon" per liter.

    In the main unit: "15p per kWh" is 0.15.
    """
    named = _FOR_EACH.search(words(parameter.name))
    unit = unit_written(named[1]) or named[1] if named else ""
    for text in (wish.part, wish.context, wish.task) if unit else ():
        found = {read for match in _EACH.finditer(text) if (read := _for(match, unit))}
        if found:
            return found.pop() if len(found) == 1 else ""
    return ""


def _for(match: re.Match[str], unit: str) -> str:
    """Return a price for one of a unit, "" where it is told for something of another measure."""
    told = unit_written(match["unit"]) or match["unit"].lower()
    price = float(match["price"]) / (100 if match["cents"] else 1)
    if told == unit:
        return f"{price:.10g}" if match["cents"] else ""
    times = converted("1", unit, told)
    return f"{round(price * float(times), 4):.10g}" if times else ""


def taken_off(parameter: Parameter, api: Api, value: str, task: str) -> str:
    """Return a percentage that comes off a price without the sign: "890 but minus 12%"."""
    off = _OFF.search(f"{words(parameter.name)} {api.description}")
    if not off or not is_share(parameter) or not value.startswith("-"):
        return value
    return (
        value[1:]
        if re.search(rf"(?:minus |[-−]){re.escape(value[1:])}\s?(?:%|percent)", task)
        else value
    )


def in_main_unit(parameter: Parameter, value: str, part: str, task: str) -> str:
    """Return a price that a text tells in cents or pence in dollars, euros or pounds, itself else."""
    if not _PRICE.search(words(parameter.name)) or not value.replace(".", "", 1).isdecimal():
        return value
    said = re.compile(rf"(?<![\w.,-]){re.escape(value)}{_CENTS}", re.IGNORECASE)
    return f"{float(value) / 100:.10g}" if said.search(part) or said.search(task) else value


def _read(match: re.Match[str]) -> str:
    """Return a price in digits, "" where it may be one of hundreds or a range.

    "One fifty dollars", "two fifty a night", "twenty thirty euros".
    """
    said = match["whole"], match["cents"] or match["few"]
    whole, cents = (text2num(one.replace("-", " "), "en") for one in said)
    in_hundreds = whole < 10 and (match["time"] or (match["money"] and not cents % 10))
    in_tens = not whole % 10 and cents == whole + 10
    return "" if in_hundreds or in_tens else f"{whole}.{cents:02d}"
