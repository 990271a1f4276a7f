"""The formulas of functions that do plain arithmetic, by the words of their documents. Data only.

What is worked out may depend on what is asked: a bill's share or its tip. A wish in words of its
own comes before what a function answers anyway.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from toolsrv_runtime.planner import operands

ANYWAY = ""
"""In place of words: asked for by any."""


class Formula(NamedTuple):
    """``says``, ``never``: of a function's name and description, patterns of whole words.

    ``takes``: per operand the words of its parameter's name, and how its value is read.
    ``works_out``: pairs of what is asked for and the expression of the operands by number; "" for
    what is known to be no arithmetic. ``usual``: what an operand is when the call leaves it out.
    """

    says: str
    never: str
    takes: tuple[tuple[str, Callable[[str], str]], ...]
    works_out: tuple[tuple[str, str], ...]
    usual: Mapping[int, str] = {}


_SHARE = r"percent(?:age)?(?: value)?"
_AMOUNT = r"(?:money )?(?:amount|principal|capital|investment|deposit)"
_RATE = r"(?:yearly |annual )?(?:interest |inflation )?(?:rate|percent(?:age)?)(?: percent)?"
_YEARS = r"(?:number of )?years|(?:time )?in years"
_DISTANCE = r"distance(?:(?: in)? (?:km|kilomet(?:er|re)s))?"
_PRICE = r"(?:net )?(?:price|amount)"
_CONSUMPTION = r"(?:lit(?:er|re)s|l) per 100 ?km|consumption"

_YEARLY = r"year|years|yearly|annual\w*|365 days|(?:12|twelve) months"
_MONTHLY = r"months?|monthly|30 days"
_PART = r"(?:how much|what) (?:of (?:it|that|this) )?(?:\w+ ){0,2}"
_SAVED = (
    r"sav(?:e|es|ed|ing|ings)|reduc\w+|how much (?:off|less|is the discount)|"
    r"(?:knock(?:s|ed|ing)?|tak(?:e|es|en|ing)|com(?:e|es|ing)|shav(?:e|es|ed|ing)) (?:\w+ ){0,2}off"
)
_EARNED = (
    r"interest (?:alone|earned|itself)|(?:earn|gain)(?:s|ed)?|how much (?:more|extra|interest)"
)
_TAX = r"how much (?:sales )?(?:tax|vat|gst)|the (?:tax|vat|gst) (?:amount|alone|itself|part)"
_TIP = rf"{_PART}(?:tips?|gratuity)|the tip (?:alone|itself)|tip (?:amount|come|leave)"
_ALL = r"in all|altogether|in total|total|all told"
_FUEL = r"(?:how (?:much|many)) (?:fuel|petrol|gas|gasoline|diesel|lit(?:er|re)s|l)"

FORMULAS = (
    Formula(
        r"percent(?:age)? of (?:a|an|the|some|any) (?:number|value|amount|total)",
        r"that .*is|what percent|add|off|increase|decrease|decimal|fraction",
        ((_SHARE, operands.percent), (r"number|amount|value|total", operands.number)),
        ((ANYWAY, "{1} * {0} / 100"),),
    ),
    Formula(
        r"percent(?:age)? (?:change|increase)",
        r"decimal|fraction",
        (
            (r"(?:old|initial|original|start|starting)(?: value| price| amount| number)?", operands.number),
            (r"(?:new|final|end|ending)(?: value| price| amount| number)?", operands.number),
        ),
        ((ANYWAY, "({1} - {0}) / {0} * 100"),),
    ),
    Formula(
        r"(?:average|mean)(?=.*\bnumbers?\b)",
        r"speed|weighted|moving|temperature|price|salary|income",
        ((r"(?:list of )?(?:numbers|values|data)", operands.mean),),
        (
            (r"median|middle|deviation|spread|range|smallest|largest|lowest|highest|most|least|minimum|maximum", ""),
            (ANYWAY, "{0}"),
        ),
    ),
    Formula(
        r"average speed",
        r"mph|miles|minutes|seconds|at an average speed",
        ((_DISTANCE, operands.kilometers), (r"(?:time |duration )?(?:in )?hours", operands.number)),
        ((r"mph|miles (?:per|an) hour", ""), (ANYWAY, "{0} / {1}")),
    ),
    Formula(
        r"(?:drive|journey|trip|travel time)(?=.*\baverage speed\b)",
        r"mph|miles (?:per|an) hour",
        ((_DISTANCE, operands.kilometers), (r"(?:average )?speed (?:in )?(?:kmh|kph|km h)", operands.number)),
        ((ANYWAY, "{0} / {1}"),),
    ),
    Formula(
        r"fuel(?=.*\bcosts?\b)",
        r"gallons?|mpg|miles per gallon",
        (
            (_DISTANCE, operands.kilometers),
            (_CONSUMPTION, operands.number),
            (r"(?:fuel )?price(?: per (?:lit(?:er|re)|l))?", operands.number),
        ),
        ((_FUEL, "{0} * {1} / 100"), (ANYWAY, "{0} * {1} / 100 * {2}")),
    ),
    Formula(
        r"fuel(?=.*\bcosts?\b)",
        r"gallons?|mpg|miles per gallon",
        ((_DISTANCE, operands.kilometers), (_CONSUMPTION, operands.number)),
        ((ANYWAY, "{0} * {1} / 100"),),
    ),
    Formula(
        r"runner finish|finish(?:ing)? time",
        r"predict\w*|known",
        ((r"(?:race )?distance", operands.kilometers), (r"pace(?: per km)?", operands.minutes)),
        ((ANYWAY, "{0} * {1}"),),
    ),
    Formula(
        r"pace",
        r"finish\w*|predict\w*",
        ((_DISTANCE, operands.kilometers), (r"time|duration", operands.minutes)),
        (
            (r"km ?/ ?h|kmh|kph|(?:km|kilomet(?:er|re)s) (?:per|an) hour", "{0} / {1} * 60"),
            (r"miles?|mi", "{1} / {0} * 1.609344"),
            (ANYWAY, "{1} / {0}"),
        ),
    ),
    Formula(
        r"bmi|body mass index",
        r"children|percentile",
        ((r"(?:body )?weight", operands.kilograms), (r"(?:body )?height", operands.meters)),
        ((ANYWAY, "{0} / {1}^2"),),
    ),
    Formula(
        r"hypotenuse|pythagoras",
        r"without",
        (
            (r"first(?: side| leg)?|(?:side |leg )?[a1]", operands.number),
            (r"second(?: side| leg)?|(?:side |leg )?[b2]", operands.number),
        ),
        (
            (r"perimeter|angles?|missing side|other side", ""),
            (r"area|surface", "{0} * {1} / 2"),
            (ANYWAY, "sqrt({0}^2 + {1}^2)"),
        ),
    ),
    Formula(
        r"discount",
        r"tax|vat|interest|present value|decimal|fraction",
        ((_PRICE, operands.number), (r"percent(?:age)?(?: off)?|discount (?:percent(?:age)?)", operands.percent)),
        ((_SAVED, "{0} * {1} / 100"), (ANYWAY, "{0} * (1 - {1} / 100)")),
    ),
    Formula(
        r"add (?:the |a )?(?:sales )?(?:tax|vat)",
        r"remov\w*|exclud\w*|extract\w*|gross|income|decimal|fraction",
        ((_PRICE, operands.number), (r"(?:sales )?(?:tax|vat)(?: rate)?(?: percent(?:age)?)|percent(?:age)?", operands.percent)),
        ((_TAX, "{0} * {1} / 100"), (ANYWAY, "{0} * (1 + {1} / 100)")),
    ),
    Formula(
        r"split(?=.*\bbill\b)(?=.*\btip\b)",
        r"uneven\w*|item\w*",
        (
            (r"(?:total )?(?:bill|amount)(?: amount| total)?", operands.number),
            (r"(?:number of )?(?:people|persons|diners|guests)", operands.number),
            (r"tip(?: percent(?:age)?| rate)?", operands.percent),
        ),
        (
            (_TIP, "{0} * {2} / 100"),
            (r"(?:each|every(?:one|body)?|per (?:person|head|nose)|a head|apiece|my share|split|\w+ (?:one )?pay\w*)",
             "{0} * (1 + {2} / 100) / {1}"),
            (_ALL, "{0} * (1 + {2} / 100)"),
            (ANYWAY, "{0} * (1 + {2} / 100) / {1}"),
        ),
        {1: "1"},
    ),
    Formula(
        r"servings",
        r"calories|nutrition",
        (
            (r"(?:ingredient )?(?:amount|quantity)", operands.number),
            (r"(?:old |original )?servings", operands.number),
            (r"(?:wanted|new|desired|target) servings", operands.number),
        ),
        ((ANYWAY, "{0} / {1} * {2}"),),
    ),
    Formula(
        r"compound interest",
        r"decimal|fraction|monthly contribution|deposits?",
        (
            (_AMOUNT, operands.number),
            (_RATE, operands.percent),
            (_YEARS, operands.number),
            (r"(?:times|periods) per year|compounds per year", operands.number),
        ),
        (
            (_EARNED, "{0} * (1 + {1} / 100 / {3})^({3} * {2}) - {0}"),
            (ANYWAY, "{0} * (1 + {1} / 100 / {3})^({3} * {2})"),
        ),
        {3: "1"},
    ),
    Formula(
        r"buying power|purchasing power",
        r"decimal|fraction|parity",
        ((_AMOUNT, operands.number), (_RATE, operands.percent), (_YEARS, operands.number)),
        ((ANYWAY, "{0} / (1 + {1} / 100)^{2}"),),
    ),
    Formula(
        r"monthly payment",
        r"decimal|fraction|down payment|balloon",
        (
            (r"(?:loan|mortgage)(?: amount)?|amount|principal", operands.number),
            (_RATE, operands.percent),
            (_YEARS, operands.number),
        ),
        (
            (r"interest (?:in all|in total|altogether|overall)|(?:total|all the|how much) interest",
             "{0} * {1} / 1200 / (1 - (1 + {1} / 1200)^(-12 * {2})) * 12 * {2} - {0}"),
            (ANYWAY, "{0} * {1} / 1200 / (1 - (1 + {1} / 1200)^(-12 * {2}))"),
        ),
    ),
    Formula(
        r"savings goal|reach a goal",
        r"decimal|fraction",
        ((r"(?:savings )?goal(?: amount)?", operands.number), (r"monthly (?:savings?|amount|deposit)", operands.number), (_RATE, operands.nothing)),
        ((ANYWAY, "{0} / {1}"),),
        {2: "0"},
    ),
    Formula(
        r"usable hosts|hosts of a subnet|subnet calculator",
        r"ipv6",
        ((r"network|subnet|cidr", operands.host_bits),),
        ((r"how many", "2^({0}) - 2"),),
    ),
    Formula(
        r"battery(?=.*\b(?:last|runtime|life)\b)",
        r"charg\w*|voltage",
        ((r"capacity (?:in )?mah|capacity", operands.number), (r"current (?:in )?ma|current", operands.number)),
        ((ANYWAY, "{0} / {1}"),),
    ),
    Formula(
        r"appliance cost|electricity cost|running an appliance",
        r"gas|tariff|standing charge",
        (
            (r"watts|power (?:in )?watts|wattage", operands.number),
            (r"hours (?:per|a) day|daily hours", operands.number),
            (r"price per kwh|price|rate", operands.number),
        ),
        (
            (rf"(?=.*\b(?:{_YEARLY})\b).*\b(?:{_MONTHLY})", ""),
            (rf".*\b(?:{_YEARLY})", "{0} / 1000 * {1} * 365 * {2}"),
            (rf".*\b(?:{_MONTHLY})", "{0} / 1000 * {1} * 30 * {2}"),
        ),
    ),
    Formula(
        r"power and resistance|ohms? law",
        r"parallel|series",
        ((r"volts|voltage", operands.number), (r"amps|amperes|current", operands.number)),
        ((r"ohms?|resist\w*", "{0} / {1}"), (ANYWAY, "{0} * {1}")),
    ),
    Formula(
        r"beat(?=.*\bmilliseconds\b)(?=.*\btempo\b)",
        r"detect\w*|upload",
        ((r"bpm|tempo|beats per minute", operands.number),),
        ((r"bars?|measures?|eighths?|sixteenths?|quavers?", ""), (ANYWAY, "60000 / {0}")),
    ),
)  # fmt: skip
