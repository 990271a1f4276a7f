"""What words are for, where that tells which functions cannot serve them. Pure.

Orders to do something in the world ("text my brother the result", "book us a table"), and questions
for a person, a reason, advice or a song: a function that only looks something else up does not
serve them, whatever it knows of brothers and tables. One that does says so in its document.
"""

from __future__ import annotations

import re
from functools import lru_cache

from toolsrv_registry.api import Api
from toolsrv_runtime.values import lexicon
from toolsrv_runtime.values.facts import words

LENGTH = 400
"""Characters of a part that are looked at."""

_THEM = r"(?:me|us|my|our|him|her|them|both|it|this|that)"
_LEAD = r"(?:(?:and|then|also|please|finally|now|so)\b[\s,]*)*"
_PEOPLE = (
    r"persons?|people|names? of|who|authors?|owners?|artists?|players?|leaders?|contacts?|profiles?"
)
_THINGS = (
    r"songs?|tracks?|lyrics|bands?|artists?|films?|movies?|restaurants?|hotels?|shops?|stores?|"
    r"wines?|teams?|venues?|places?"
)
_MONEY = rf"(?:usd|eur|gbp|jpy|chf|cad|aud|inr|cny|sek|nok|dkk|mxn|brl|zar|thb|[^\W\d_]+ (?:money|currency)|{lexicon.CURRENCY_NAMES})"
_TEXTS = (
    r"(?:reply|letter|essay|article|story|poem|haiku|sonnet|limerick|speech|review|report|blog post|toast|joke|"
    r"cover letter|apology|thank[- ]you (?:note|card)|invitation|screenplay)"
)
_SPOONS = r"(?:cups|tablespoons|teaspoons|tbsps?|tsps?)"
_WEIGHT = r"g|grams?|kg|kilos?|oz|ounces?|lbs?|pounds?"
_PURPOSES = {
    rf"(?:e-?mail|mail)\s+(?:{_THEM}|the|an?)\b|e-?mail\s+\S+@": r"send\w*|smtp|mailing|mailbox|inbox",
    rf"(?:text|message|whatsapp|sms)\s+{_THEM}\b": r"send\w*|sms|whatsapp|texting",
    r"send\s+(?:(?:me|us|my|our|him|her|them)\b|an?\s+(?:e-?mail|mail|text|sms|message|letter|parcel)\b"
    r"|(?:it|this|that|both|the\s+\w+)\s+(?:off\s+)?to\b)": r"send\w*|deliver\w*|sms|notif\w*|ship\w*",
    rf"(?:call|phone|ring|dial)\s+(?:{_THEM}|up)\b": r"calls|dial\w*|telephony|voice calls?",
    r"(?:book|reserve)\s+(?:me|us|him|her|them|an?|the|two|three|four|\d{1,2}(?=\s))\b": r"booking\w*|reserv\w*",
    rf"(?:pay|wire|transfer)\s+(?:{_THEM}|the)\b": r"payouts?|wire transfers?|money transfers?|checkout",
    r"set\s+(?:up\s+)?(?:me\s+)?(?:an?\s+|the\s+)?(?:alarm|timer|reminder)\b"
    r"|remind\s+(?:me|us|him|her|them)\s+(?:to|at|on|in|tomorrow|an? \w+ before|(?:the|one) \w+ before)\b": r"alarms?|timers?|reminders?|schedul\w*",
    r"(?:put|add|enter|write|save)\b[^.?!]{0,60}\b(?:in|into|on|to)\s+(?:my|our|the|his|her|their)\s+(?:\w+\s+){0,2}?"
    r"(?:calendar|diary|agenda|planner|to-?do list)\b": r"calendars?|diar\w+|appointments?|schedul\w*",
    rf"(?:tweet|post)\s+(?:{_THEM}|the|about)\b": r"tweets?|posts?|posting|publish\w*",
    r"(?:upload|download)\s+\w": r"upload\w*|download\w*",
    r"(?:(?:and|but)\s+)?why\b(?!\s+(?-i:[A-Z]\w*\s+[A-Z]))": r"why|reasons?|expla\w+|causes?",
    r"(?:i wonder |tell me |find out )?who(?!.*\+\d{1,4}\b(?!\s?\d))(?:'s| is| has| have| had| was| did)?"
    r"\s+(?:the\s+)?(?:own|own(?:s|er of)|"
    r"wr(?:ote|itten)|invent\w*|found(?:ed|er of)|discover\w*|compos\w*|paint\w*|built|run(?:s|ning)|lead\w*|won|"
    r"call(?:ed|ing|s)|rang|ringing|texted|made|sang|directed|president|mayor|ceo|author of|king|queen)\b": _PEOPLE,
    r"(?:which|what(?=\s+(?:famous|well-known)))\s+(?:famous |other |well-known )?"
    r"(?:people|persons?|celebrit\w+|actors?|singers?|players?)\b": _PEOPLE,
    r"(?:which|what)\s+(?:songs?|bands?|films?|movies?|restaurants?|hotels?|shops?|stores?|wines?|teams?)\b": _THINGS,
    rf"(?:write|draft|compose|pen)\s+(?:(?:me|us|him|her|them|my \w+)\s+)?(?:an?|some)\s+(?:[\w-]+\s+){{0,3}}?"
    rf"{_TEXTS}\b(?!.*\bmorse\b)": r"generat\w*|compos\w*|writ(?:er|es|ing)|draft\w*|language model|chat\w*",
    rf"(?:convert|change|exchange|how (?:much|many)|what(?:'?s| is| are)?|the)\b[^.?!]{{0,60}}?\b{_MONEY}\b"
    rf"[^.?!]{{0,20}}?\b(?:to|in|into|for|as)\s+(?:\w+\s+){{0,2}}?{_MONEY}\b": r"exchange|forex|(?:currency|conversion) rates?|conver\w+ (?:of )?currenc\w+|currency conver\w+",
    r"(?:in )?(?:which|what) (?:city|country|place|town)\b[^.?!]{0,30}\bip\b"
    r"|(?:find out )?where\b[^.?!]{0,30}\b(?:ip|\d{1,3}(?:\.\d{1,3}){3})\b|geo-?locate\b": r"geo-?ip|geolocat\w*|locat\w* of (?:an )?ip",
    r"how many (?:more )?weeks\b[^.?!]{0,40}\b(?:until|till|left|to go|since|between|away|lie)\b": r"between|until|difference|days|apart|countdown",
    rf"how many {_SPOONS}\b(?:[^.?!\d]|(?<=\d)[.,](?=\d)){{0,30}}\d[\d.,]*\s?(?:{_WEIGHT})\b"
    rf"|\d[\d.,]*\s?(?:{_WEIGHT}) of [^.?!]{{1,30}}? (?:in|to|as|into) {_SPOONS}\b": r"(?:weight|grams) (?:in)?to (?:volume|cups)",
    r"how (?:many grams|heavy)\b[^.?!]{0,20}\b(?:\d[\d.,]*|an?|one|two|three|five|ten) mol(?:es?)?\b": r"mol(?:es?)? (?:in)?to grams|molar mass",
    r"(?:what|which|how (?:fast|strong))\b[^.?!]{0,30}\bwind (?:speed )?[^.?!]{0,12}\b(?:beaufort|force)(?: force)? \d": r"beaufort (?:number )?(?:in)?to",
    r"[^.?!]{0,60}\bhypotenuse (?:of |is |= ?)?\d[^.?!]{0,40}\b(?:sides?|legs?|other)\b": r"missing|legs?|cathet\w+",
    r"[^.?!]{0,60}\b(?:clocks?|(?:what|local) (?:time|hour))\b[^.?!]{0,30}\b(?:(?:at|in) that (?:very )?(?:moment|instant|time|second)|then\b(?=\W*$|,))": r"convert|conver\w+",
    r"how strong\b[^.?!]{0,40}\b(?:winds?|breeze|gale|gusts?|storm)\b": r"winds?|beaufort|gales?|storms?",
    r"should\s+(?:i|we|he|she|they)\b": r"should|advi[cs]e\w*|recommend\w*|suggest\w*|forecast\w*",
}
"""How such words begin -> what the document of a function says that serves them."""

_ABOUT = {
    r"[^.?!]{0,60}\b(?:which|what) (?:book|novel|edition)\b(?: (?:is|was|did|do|have) (?:it|this|that|i|we|he|she|they)\b|\W*$)"
    r"|(?:what(?:['’]?s| is| are)|which is|tell me|give me|and) (?:the|its|his|her) (?:author|publisher|title of (?:the|this|that) book)\b": r"authors?|book titles?|publishers?|bibliograph\w*",
    r"[^.?!]{0,60}\b(?:the )?(?:name|address) of (?:the|this|that) (?:company|firm|business|owner|holder|customer)\b"
    r"|[^.?!]{0,60}\b(?:which|what) (?:company|firm|business)\b|(?:and )?where (?:is|are) (?:it|they|the (?:company|firm)) registered\b": r"company (?:profile|details|register)|registr(?:y|ies|ation)|owners?|holders?",
    r"[^.?!]{0,60}\b(?:which|what) (?:gate|terminal|platform|carousel)\b"
    r"|(?:and )?(?:is|was) (?:it|she|he|(?:the|my|our|his|her) (?:flight|plane|train|bus)) (?:late|delayed|on time|cancell?ed)(?=\W*$|,|\s+(?:and|or)\b)": r"gates?|delay\w*|flight status|departures?|arrivals?",
    r"[^.?!]{0,60}\b(?:traffic (?:jams?|is|now|on)|roadworks|congest\w*|tolls?\b|roads? (?:is|are|has|have) (?:\w+ ){0,2}jam\w*)": r"traffic|tolls?|congest\w*|roadworks",
    r"[^.?!]{0,60}\b(?:(?:high|low) water(?! (?:intake|pressure|content|level)\b)|tides?\b|(?:water|sea|tide) (?:is |at its )(?:highest|lowest))": r"tides?|tidal",
    r"[^.?!]{0,60}\bcalories (?:(?:has|have)(?! (?:i|we|you|he|she|they|my|our)\b)"
    r"|(?:(?:is|are) (?:there )?)?in(?! (?:an?|one|each|every|the) (?:day|week|hour|run|race)\b| total\b| all\b)|does an? \w+ have)\b": r"nutrition\w*|nutrients?|foods?|calories (?:in|of)",
    r"[^.?!]{0,60}\b(?:which|what) (?:bank and branch|branch|bank (?:is|does|has|belongs))\b|[^.?!]{0,80}\bIFSC\b": r"ifsc|branch\w*|bank names?",
    r"[^.?!]{0,60}\b(?:space station|ISS|satellites?)\b": r"satellites?|space station|iss|orbit\w*",
    r"[^.?!]{0,60}\b(?:cloud (?:base|ceiling)|ceiling over|metar)\b": r"clouds?|ceiling|metar|visibility",
    r"[^.?!]{0,60}\b(?:customs? (?:tariff|duty|code)|(?:import )?(?:duty|duties|tariffs?) (?:is|are|on|for|do)\b)": r"customs|tariffs?|dut(?:y|ies)|harmoni[sz]ed",
    r"(?:balance|equal(?:ise|ize)) (?:this|the|my|that|it|me)\b(?![^.?!]{0,20}\b(?:budget|account|books?)\b)": r"balanc\w*|reactions?|equations?",
}
"""The same for questions about what others tell something else of: a book's number, a tax number.

A sentence that states it may stand before.
"""


def _compiled(purposes: dict[str, str]) -> tuple[tuple[re.Pattern[str], re.Pattern[str]], ...]:
    return tuple(
        (re.compile(rf"{_LEAD}(?:{said})", re.IGNORECASE), re.compile(rf"\b(?:{does})\b"))
        for said, does in purposes.items()
    )


_BOUND, _BOUND_BEHIND = _compiled(_PURPOSES | _ABOUT), _compiled(_ABOUT)


_SENTENCE = re.compile(r"(?<=[^\W\d_][.?!;])\s+(?=\S)|(?<=\d[.?!;])\s+(?=[^\W\d])")


def is_bound(part: str) -> bool:
    """Whether a part of a task is such an order or question."""
    return _does(part) is not None


def may_serve(part: str, api: Api) -> bool:
    """Whether a function may serve a part: any one may, but for these those that say they do."""
    does = _does(part)
    return does is None or bool(does.search(_document(api)))


@lru_cache(maxsize=512)
def _does(part: str) -> re.Pattern[str] | None:
    part = part[:LENGTH]
    last = _SENTENCE.split(part)[-1]
    found = (does for said, does in _BOUND if said.match(part))
    behind = (does for said, does in _BOUND_BEHIND if said.match(last))
    return next(found, None) or next(behind, None)


def _document(api: Api) -> str:
    return f"{words(api.name)} {words(api.tool)} {api.description}".lower()
