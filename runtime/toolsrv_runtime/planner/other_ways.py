"""Where a function is down, another that is known to tell the same, called with what the first was.

A date written out in full begins with its weekday, a list of a year's holidays says whether a day
is one. A model of a few million parameters cannot know that, and documents do not say what
responses hold. Both functions are known by the words of their documents, as in ``formula_table``;
every argument of the call that failed has to have its place in the other. Pure.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from toolsrv_registry.api import Api
from toolsrv_runtime.contract.format import Step
from toolsrv_runtime.planner.bridging import Crossing
from toolsrv_runtime.planner.calculating import is_down
from toolsrv_runtime.planner.scene import Scene, about
from toolsrv_runtime.values import kinds
from toolsrv_runtime.values.facts import words


class _Way(NamedTuple):
    """``down``, ``by``: of the two functions' names and descriptions.

    ``takes``: the names of the first one's parameters, and what of their values is named for
    ``gives``, the second one's parameters. What has one name in both is handed over as it is.
    ``asked``: what the words that the call is for must ask for. ``search`` finds the second
    function. ``named`` finds further values in the task, which has to tell just one of each.
    """

    down: str
    takes: tuple[tuple[str, str], ...]
    by: str
    gives: tuple[tuple[str, str], ...]
    search: str
    asked: str = ""
    named: tuple[tuple[str, Callable[[str], list[str]]], ...] = ()


def _codes(task: str) -> list[str]:
    return re.findall(r"(?<![\w.,:/+-])\+?([1-9]\d{0,2})(?![\w:/-]|[.,]\d|\s?[%°])", task)


def _currencies(task: str) -> list[str]:
    return kinds.find_values("currency", task)


_COUNTRY = (r"country(?: name| code)?", r"(?P<country>.+)")
_YEAR_OF = (r"date|day", r"(?P<year>\d{4})-\d\d-\d\d")
_OF_A_YEAR = r"list (?:of )?(?:all )?(?:the )?public holidays"
_CODE_IN = r"which country(?=.*\b(?:dial(?:l)?ing|calling) code\b)"
_CONVERTER = r"convert an amount from one unit to another"
_UNIT = (r"unit(?: name)?", r"(?P<unit>.+)")
_TEXT = (r"text|word|phrase|sentence", r"(?P<text>.+)")
_TOSS = (r"times|flips|count", r"1")
_NAMED = re.compile(r"{(\w+)}")
_WAYS = (
    _Way(
        r"day of the week|weekday",
        ((r"date", r"(?P<date>.+)"),),
        r"write a date out|date in (?:a|another|any) language",
        ((r"date", "{date}"), (r"language", "English")),
        "write a date out in full in a language",
    ),
    _Way(
        r"hex code of (?:a |the )?(?:named )?colou?r",
        ((r"colou?r(?: name)?", r"(?P<color>.+)"),),
        r"rgb(?=.*\bvalues? of (?:a |the )?colou?r)",
        ((r"colou?r(?: name)?", "{color}"),),
        "RGB values of a color",
    ),
    _Way(
        r"whether a date is a (?:public |bank )?holiday|is it a (?:public |bank )?holiday",
        (_COUNTRY, _YEAR_OF),
        _OF_A_YEAR,
        ((_COUNTRY[0], "{country}"), (r"year", "{year}")),
        "list all public holidays of a country in a year",
    ),
    _Way(
        r"next (?:upcoming )?(?:public |bank )?holiday",
        (_COUNTRY, _YEAR_OF),
        _OF_A_YEAR,
        ((_COUNTRY[0], "{country}"), (r"year", "{year}")),
        "list all public holidays of a country in a year",
    ),
    _Way(
        r"isbn(?=.*\bcorrect\b)|check isbn|verify (?:the )?(?:check digit of )?(?:an )?isbn",
        ((r"isbn(?: number| code)?", r"(?P<barcode>97[89][\d -]{10,14})"),),
        r"check digit(?=.*\bbarcodes?\b)",
        ((r"barcode|ean(?: code)?", "{barcode}"),),
        "verify the check digit of a product barcode",
    ),
    _Way(
        r"flip a coin|coin (?:flip|toss)|toss a coin",
        (_TOSS,),
        r"picks? one of (?:several |some |the |a few )?options",
        ((r"options|choices|items", "heads, tails"),),
        "pick one of several options at random",
    ),
    _Way(
        r"roll dice|dice roll(?:er)?|throw dice",
        ((r"dice|notation", r"1?[dD](?P<sides>\d{1,6})"),),
        r"random (?:whole )?(?:number|integer)(?=.*\b(?:between|bounds|range)\b)",
        ((r"min(?:imum)?|lowest|from", "1"), (r"max(?:imum)?|highest|to", "{sides}")),
        "draw a random whole number between two bounds",
    ),
    _Way(
        r"random (?:whole )?(?:number|integer)(?=.*\b(?:between|bounds|range)\b)",
        ((r"min(?:imum)?|lowest|from", "1"), (r"max(?:imum)?|highest|to", r"(?P<sides>\d{1,6})")),
        r"roll dice|dice roll(?:er)?|throw dice",
        ((r"dice|notation", "1d{sides}"),),
        "roll dice",
    ),
    _Way(
        r"utc offset",
        ((r"(?:time ?)?zone", r"(?P<city>[^/\d+]+)"),),
        r"current (?:local )?time",
        ((r"city|place|location", "{city}"),),
        "current local time in a city",
        r"utc|gmt|offset|off",
    ),
    _Way(
        r"hours apart|time difference",
        (
            (r"(?:from|first) (?:city|zone|place)", r"(?P<first>.+)"),
            (r"(?:to|second) (?:city|zone|place)", r"(?P<second>.+)"),
            (r"date|day", r"(?P<date>.+)"),
        ),
        r"convert a (?:clock )?time",
        (
            (r"time", "{date} 12:00"),
            (r"time", "12:00"),
            (r"(?:from|source) (?:time ?)?zone", "{first}"),
            (r"(?:to|target) (?:time ?)?zone", "{second}"),
        ),
        "convert a clock time from one time zone to another",
    ),
    _Way(
        r"is (?:a|the|this) number (?:a )?prime|prime check|check(?:s)? (?:if|whether) a number is prime",
        ((r"number|n|value", r"(?P<number>.+)"),),
        r"into primes?|prime factors?",
        ((r"number|n|value", "{number}"),),
        "factorize a number into primes",
    ),
    _Way(
        r"palindrome|reads? the same backwards",
        ((r"text|word|phrase", r"(?P<text>.+)"),),
        r"reverse (?:the )?(?:letters|text)|text reverser",
        ((r"text|word|phrase", "{text}"), (r"what|mode", "letters")),
        "reverse the letters of a text",
    ),
    _Way(
        r"qr code(?=.*\b(?:svg|image|png)\b)",
        ((r"text|data|content|url", r"(?P<text>.+)"),),
        r"qr code(?=.*\b(?:block characters|terminal)\b)",
        ((r"text|data|content|url", "{text}"),),
        "draw a QR code out of block characters",
    ),
    _Way(
        r"qr code(?=.*\b(?:block characters|terminal)\b)",
        ((r"text|data|content|url", r"(?P<text>.+)"),),
        r"qr code(?=.*\b(?:svg|png) image\b)",
        ((r"text|data|content|url", "{text}"),),
        "create a QR code as an image",
    ),
    _Way(
        r"ip address lies inside a network|network contains (?:an )?address",
        ((r"network|subnet|cidr", r"(?P<network>.+)"), (r"(?:ip )?address|ip", r".+")),
        r"host range",
        ((r"network|subnet|cidr", "{network}"),),
        "host range of a subnet",
    ),
    _Way(
        r"leap year",
        ((r"year", r"(?P<year>\d{4})"),),
        r"week number(?=.*\bday of the year\b)",
        ((r"date|day", "{year}-12-31"),),
        "week number and day of the year for a date",
    ),
    _Way(
        r"number of days between (?:two )?dates",
        ((r"start(?: date)?|from", r"(?P<first>.+)"), (r"end(?: date)?|to", r"(?P<last>.+)")),
        r"how old (?:a|the) person",
        ((r"birth ?da(?:te|y)|date of birth", "{first}"), (r"on|at|date", "{last}")),
        "how old a person is from the date of birth",
    ),
    _Way(
        r"how often does (?:a )?.*\bwords?\b.*\boccur|count occurrences",
        ((r"text", r"(?P<text>.+)"), (r"find|word|phrase", r"[^\W\d_]{2,}")),
        r"most frequent words|word frequency",
        ((r"text", "{text}"),),
        "most frequent words in a text",
    ),
    _Way(
        r"reverse (?:the )?(?:letters|text)|text reverser",
        (_TEXT, (r"what|mode", r"letters")),
        r"palindrome|reads? the same backwards",
        ((_TEXT[0], "{text}"),),
        "does a word read the same backwards",
    ),
    _Way(
        r"url slug|slugify",
        ((r"text|title", r"(?P<text>.+)"),),
        r"change a text to upper case|change (?:letter )?case",
        ((r"text", "{text}"), (r"(?:letter )?case|style", "kebab")),
        "change the case of a text, kebab case",
    ),
    _Way(
        r"telephone number valid|validate (?:a )?(?:tele)?phone",
        ((r"(?:phone )?number", r"\+(?P<code>[1-9]\d{0,2})[ (.-].+"),),
        _CODE_IN,
        ((r"(?:calling |dialing )?code", "{code}"),),
        "which country a calling code belongs to",
        r"country|where|from",
    ),
    _Way(
        r"(?:dial(?:l)?ing prefix|calling code)(?=.*\bcountry\b)",
        (_COUNTRY,),
        _CODE_IN,
        ((r"(?:calling |dialing )?code", "{code}"),),
        "which country a calling code belongs to",
        named=(("code", _codes),),
    ),
    _Way(
        r"(?:which )?currency(?=.*\bin a country\b)|national currency",
        (_COUNTRY,),
        r"name, symbol(?=.*\bcurrency\b)|currency information",
        ((r"currency(?: code| name)?", "{currency}"),),
        "name and symbol of a currency",
        r"codes?|letters|symbol|sign|abbreviat\w*|iso",
        named=(("currency", _currencies),),
    ),
    _Way(
        r"atomic mass",
        ((r"element", r"(?P<symbol>[A-Z][a-z]?)"),),
        r"molar mass of",
        ((r"formula|compound|substance", "{symbol}"),),
        "molar mass of a chemical compound",
        r"mass|weighs?|weight|heavy",
    ),
    *(
        _Way(
            r"unit of measurement measures",
            (_UNIT,),
            _CONVERTER,
            (
                (r"amount|value|quantity", "1"),
                (r"from(?: unit)?", "{unit}"),
                (r"to(?: unit)?", known),
            ),
            "convert an amount from one unit to another",
            asked,
        )
        for known, asked in (
            ("meters", r"met(?:er|re)s?"),
            ("kilograms", r"kilos?|kilograms?|kg"),
            ("liters", r"lit(?:er|re)s?"),
        )
    ),
    _Way(
        _CONVERTER,
        (
            (r"amount|value|quantity", r"1(?:\.0)?"),
            (r"from(?: unit)?", r"(?P<unit>.+)"),
            (
                r"to(?: unit)?",
                r"(?:(?:sq(?:uare)?|cubic) ?)?(?:m|met(?:er|re)s?)|kg|kilos?|kilograms?|seconds?",
            ),
        ),
        r"unit of measurement measures",
        ((_UNIT[0], "{unit}"),),
        "what a unit of measurement measures and its value in SI units",
    ),
)


def other_way(api: Api, arguments: Mapping[str, Any], part: str, scene: Scene) -> Crossing | None:
    """Return the call on offer that tells what a call that is down would have; None without one."""
    for way, values in _open(api, arguments, part, scene.task):
        for offer in scene.offers:
            if offer.function.api.id == api.id or is_down(offer.function, scene):
                continue
            given = _given(way, values, arguments, offer.function.api)
            if given and not scene.spent(part, offer.function.name):
                keys = {one.name: key for key, one in offer.function.parameters.items()}
                return Crossing(part, offer, {keys[name]: text for name, text in given.items()})
    return None


def of_step(step: Step, scene: Scene) -> Crossing | None:
    """Return the same for a step that has just failed; None where its function is not down."""
    api = _down(step, scene)
    return other_way(api, json.loads(step.move.arguments), about(step), scene) if api else None


def searches(step: Step, scene: Scene) -> tuple[str, ...]:
    """Return what to look for that could stand in for a step's function, which is down."""
    api = _down(step, scene)
    given = json.loads(step.move.arguments) if api else {}
    ways = _open(api, given, about(step), scene.task) if api else []
    return tuple(way.search for way, _ in ways)


def _down(step: Step, scene: Scene) -> Api | None:
    offers = (one.function for one in scene.offers if one.function.name == step.move.function)
    return next((one.api for one in offers if step.down), None)


def _open(
    api: Api, arguments: Mapping[str, Any], asked: str, task: str
) -> list[tuple[_Way, dict[str, str]]]:
    """Return the ways round a function whose call fits them, each with the values it hands on."""
    told = _told(api)
    return [
        (way, values)
        for way in _WAYS
        if re.search(rf"\b(?:{way.down})\b", told)
        and re.search(rf"\b(?:{way.asked})\b", asked, re.IGNORECASE)
        and (values := _values(way, arguments, task)) is not None
    ]


def _values(way: _Way, arguments: Mapping[str, Any], task: str) -> dict[str, str] | None:
    """Return the named values of a call; None where one that must be given is missing or otherwise."""
    found: dict[str, str] = {}
    for name, value in arguments.items():
        shape = next(
            (shape for takes, shape in way.takes if re.fullmatch(takes, words(name))), None
        )
        text = str(value).strip()
        match = re.fullmatch(shape, text, re.DOTALL) if shape is not None else None
        if shape is not None and match is None:
            return None
        found |= match.groupdict() if match else {}
    for name, find in way.named:
        told = set(find(task))
        if len(told) != 1:
            return None
        found[name] = told.pop()
    return found


def _given(
    way: _Way, values: Mapping[str, str], arguments: Mapping[str, Any], api: Api
) -> dict[str, str]:
    """Return the arguments of the second function by its parameters' names; none where one lacks.

    None as well where an argument of the first call would be lost.
    """
    if not re.search(rf"\b(?:{way.by})\b", _told(api)):
        return {}
    given: dict[str, str] = {}
    for parameter in api.parameters:
        name = words(parameter.name)
        texts = [text for takes, text in way.gives if re.fullmatch(takes, name)]
        text = next((one for one in texts if set(_NAMED.findall(one)) <= values.keys()), None)
        if text is not None and (not parameter.enum or text in parameter.enum):
            given[parameter.name] = text.format(**values)
        elif not texts:
            same = next((str(v) for key, v in arguments.items() if words(key) == name), None)
            given |= {parameter.name: same} if same is not None else {}
    handed = {words(name) for name in given}
    lost = any(
        words(key) not in handed
        and not any(re.fullmatch(takes, words(key)) for takes, _ in way.takes)
        for key in arguments
    )
    whole = all(one.name in given for one in api.required)
    return given if whole and not lost else {}


def _told(api: Api) -> str:
    return f"{words(api.name)} {words(api.description)}"
