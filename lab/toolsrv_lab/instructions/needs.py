"""Needs in a person's words: the verb and object of an API, and a clause that asks for it.

The intent is read from the API's name and description. The generator's word lists are in
``data/``.
"""

from __future__ import annotations

import html
import random
import re
from collections import defaultdict
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from toolsrv_lab.instructions.values import spoken_value
from toolsrv_registry.api import Api, Parameter
from toolsrv_registry.words import STOP_WORDS


@cache
def synonyms() -> dict[str, tuple[str, ...]]:
    """Return word or phrase -> what may stand for it."""
    found: dict[str, list[str]] = defaultdict(list)
    for line in _lines("synonyms.txt"):
        group = [part.strip() for part in line.split(",")]
        for word in group:
            found[word] += [other for other in group if other != word]
    return {word: tuple(dict.fromkeys(others)) for word, others in found.items()}


@cache
def openings() -> dict[str, tuple[str, ...]]:
    """Return category (``any`` for all) -> openings with ``{slot}`` places."""
    return _sections("stories.txt")


@cache
def slots() -> dict[str, tuple[str, ...]]:
    """Return slot name -> what may fill it."""
    return _sections("slots.txt")


def _sections(name: str) -> dict[str, tuple[str, ...]]:
    found: dict[str, list[str]] = defaultdict(list)
    heads: list[str] = []
    for line in _lines(name):
        if line.startswith("["):
            heads = [head.strip() for head in line.strip("[]").split(",")]
            continue
        for head in heads:
            found[head].append(line)
    return {head: tuple(lines) for head, lines in found.items()}


def _lines(name: str) -> list[str]:
    text = (files("toolsrv_lab.instructions") / "data" / name).read_text("utf-8")
    return [line.strip() for line in text.splitlines() if line.strip() and line[0] != "#"]


GET = "get"

_VERBS = {
    GET: (
        "access all browse display fetch find get gets give gives list lists load lookup obtain "
        "provide provides pull query read receive request retrieve retrieves return returns see "
        "search searches show shows view"
    ),
    "calculate": "calc calculate calculates compute computes count determine estimate measure",
    "check": "check checks detect detects identify inspect recognize test validate verify verifies",
    "convert": "convert converts decode encode encrypt format parse parses transform translate",
    "create": "add build create creates design generate generates insert make post produce render",
    "analyze": "analyse analyze analyzes classify compare evaluate extract monitor predict rank",
    "change": "change delete edit modify patch put remove reset set update",
    "send": "download post save send share store submit subscribe upload",
}
VERB_CLASS = {verb: kind for kind, verbs in _VERBS.items() for verb in verbs.split()}
_IRREGULAR = {"lists": "list", "searches": "search", "gets": "get", "verifies": "verify"}

_LEAD = re.compile(
    r"""^(?:
        (?:use|call)\s+this\s+(?:api|endpoint|method)?\s*(?:to|for)\s+
      | (?:with\s+)?(?:this|the|our)?\s*(?:rest\s+)?(?:api|endpoint|end\s*point|method|route|service|function|call|
          request|operation|resource|query|tool)s?\s*
          (?:will|can|is\s+used\s+to|is\s+to|allows?\s+(?:you|users?|us)?\s*to|lets?\s+you|
          helps?\s+(?:you\s+)?(?:to\s+)?|enables?\s+(?:you\s+|users\s+)?to|that|which|used|to|for)?\s+
          (?:be\s+used\s+to\s+)?
      | (?:allows?|enables?)\s+(?:you|users?|the\s+user|us)?\s*to\s+
      | you\s+can\s+(?:use\s+this\s+to\s+)?
      | (?:it|this)\s+(?=\w+s\b)
      | used\s+(?:to|for)\s+
      | (?:simply|just|simple|easily|please|to)\s+
    )""",
    re.VERBOSE | re.IGNORECASE,
)
_TAG = re.compile(r"<[^>]{0,200}>|https?://\S+|\*\*|`|&#?\w+;|\{[^}]*\}|\[|\]")
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n|\t|;|\s-\s|:\s")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|[_/\-.?&=]+")
_NOISE = frozenset(
    [
        "api",
        "apis",
        "v1",
        "v2",
        "v3",
        "v4",
        "rest",
        "json",
        "endpoint",
        "copy",
        "beta",
        "deprecated",
        "php",
        "http",
        "https",
    ]
)
_HOLLOW = frozenset(
    [
        "all",
        "by",
        "data",
        "detail",
        "details",
        "endpoint",
        "example",
        "get",
        "home",
        "id",
        "index",
        "info",
        "information",
        "items",
        "latest",
        "list",
        "main",
        "name",
        "number",
        "one",
        "result",
        "results",
        "search",
        "single",
        "status",
        "test",
        "value",
        "version",
    ]
)
_ARTICLE = re.compile(r"^(?:a|an|the|all|any|some|your|this|that|of)\s+", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Intent:
    """A reading of an API: class of its verb, the verb, its object; ``hollow`` says too little."""

    kind: str
    verb: str
    thing: str
    hollow: bool


def intents(api: Api) -> list[Intent]:
    """Return the readings of an API's name, description and tool, most telling first."""
    found = [reading for text in _sentences(api.description)[:3] if (reading := _read(text))]
    named = _read(" ".join(spoken(api.name)))
    if named:
        found.append(named)
    return list(dict.fromkeys(found))


def topic(api: Api) -> str:
    """Return what the tool is about in a few words: its name without version and filler."""
    words = [word for word in spoken(api.tool) if word not in _NOISE and not word.isdigit()]
    return " ".join(words[:6])


def about(api: Api) -> list[str]:
    """Return the short telling sentences of the tool's description."""
    return [text for text in _sentences(api.tool_description)[:2] if 2 <= len(text.split()) <= 25]


def spoken(name: str) -> list[str]:
    """Return the lower-case words of a technical name."""
    plain = _CAMEL.sub(" ", _TAG.sub(" ", html.unescape(name)))
    words = re.findall(r"[^\W_]+(?:'[^\W_]+)?", plain)
    return [w if w.isupper() and len(w) <= 5 else w.lower() for w in words]


def _sentences(text: str) -> list[str]:
    plain = _TAG.sub(" ", html.unescape(text[:700]))
    parts = (" ".join(part.split()).strip(" .!?,:;()\"'") for part in _SENTENCE.split(plain))
    return [part for part in parts if len(part) > 3]


def _read(text: str) -> Intent | None:
    before = None
    while before != text:
        before, text = text, _LEAD.sub("", text, count=1).strip()
    words = text.split()[:24]
    words = [word for word in words if word.lower() not in _NOISE or len(words) < 3]
    if not words:
        return None
    verb = words[0].lower().strip(".,:;")
    kind = VERB_CLASS.get(verb)
    if kind is None:
        kind, verb = GET, "get"
    else:
        words = words[1:]
    if verb not in VERB_CLASS or verb.endswith("s"):
        verb = _IRREGULAR.get(verb, verb.removesuffix("s"))
    thing = " ".join(words)
    thing = _ARTICLE.sub("", _ARTICLE.sub("", thing)).strip(" .,;:")
    if not thing:
        return None
    telling = [w for w in re.findall(r"\w+", thing.lower()) if w not in STOP_WORDS | _HOLLOW]
    return Intent(kind, verb, thing, hollow=len(telling) < 1)


_GET_VERBS = (
    "get", "find", "fetch", "retrieve", "show me", "give me", "tell me", "provide me with", "list",
    "look up", "pull up", "provide", "share", "send me", "obtain", "check", "gather", "bring up",
)  # fmt: skip
_FRAMES = {
    GET: (
        "can you {get} {np}", "could you {get} {np}", "could you please {get} {np}", "please {get} {np}",
        "{get} {np}", "I need {np}", "I'd like to know {np}", "I would like to see {np}",
        "I want to know {np}", "I want {np}", "I'm looking for {np}", "I am interested in {np}",
        "help me find {np}", "what is {np}", "what are {np}", "where can I find {np}",
        "I need to know {np}", "do you know {np}", "can you help me with {np}", "is there {np}",
        "what about {np}", "I also want {np}", "it would be great to have {np}", "show me {np}",
        "I need information on {np}", "tell me about {np}", "I'm curious about {np}",
        "I'd love to have {np}", "are there {np}", "can you tell me {np}", "I require {np}",
        "I have to find {np}", "which {np} are there", "any {np}", "suggest {np}", "recommend {np}",
    ),
    "": (
        "can you {verb} {np}", "could you {verb} {np}", "please {verb} {np}", "{verb} {np}",
        "I need to {verb} {np}", "I want to {verb} {np}", "I'd like to {verb} {np}",
        "I would like you to {verb} {np}", "help me {verb} {np}", "how do I {verb} {np}",
        "is it possible to {verb} {np}", "I have to {verb} {np}", "we should {verb} {np}",
        "would you {verb} {np} for me", "I'm trying to {verb} {np}", "let's {verb} {np}",
    ),
}  # fmt: skip
_BEFORE = (
    "the ", "the ", "a list of ", "all the ", "some ", "the details of ", "information about ",
    "details about ", "detailed information about ", "the latest ", "data on ", "the list of ",
    "a ", "everything on ", "",
)  # fmt: skip
_FROM_TOOL = (
    "from {tool}", "on {tool}", "using {tool}", "using the {tool} API", "with the {tool} tool",
    "in {tool}", "available on {tool}", "via {tool}", "through the {tool} service", "for {tool}",
    "provided by {tool}", "by using {tool}", "in the {tool} database",
)  # fmt: skip
_QUOTED = (
    "using the '{name}' API", "with the '{name}' endpoint", "by calling the {name} API endpoint",
    "using the {name} function", "use the '{name}' API for that", "via '{name}'",
)  # fmt: skip
_VALUE = (
    "for {value}", "with the {name} '{value}'", "for the {name} {value}", "with {name} {value}",
    "where the {name} is {value}", "of {value}", "({name}: {value})", "for {name} '{value}'",
    "and the {name} is {value}", "with {name} set to {value}", "about {value}",
)  # fmt: skip
_WHERE = ("in {value}", "for {value}", "near {value}", "around {value}", "of {value}")
_WHEN = ("on {value}", "for {value}", "as of {value}")
_TODAY = frozenset({"today", "tomorrow", "yesterday", "next week"})
_BARE_LIMIT = 14


@dataclass(frozen=True, slots=True)
class Style:
    """How freely a text is worded, all in [0, 1]."""

    synonyms: float
    thinning: float
    tool: float
    quoted: float
    values: float


def need(api: Api, rng: random.Random, style: Style) -> str:
    """Return one clause, without final punctuation."""
    readings = intents(api)
    intent = _choose(readings, rng)
    thing = _thing(api, intent, rng, style)
    phrase = _decorated(api, thing, intent, rng, style)
    if rng.random() < 0.07:
        return phrase
    return _framed(phrase, intent, rng, style)


def _choose(readings: list[Intent], rng: random.Random) -> Intent:
    telling = [one for one in readings if not one.hollow] or readings
    if not telling:
        return Intent(GET, "get", "", hollow=True)
    return telling[0] if rng.random() < 0.6 else rng.choice(telling)


def _thing(api: Api, intent: Intent, rng: random.Random, style: Style) -> str:
    words = intent.thing.split()
    if len(words) > _BARE_LIMIT:
        words = words[: rng.randrange(6, _BARE_LIMIT + 1)]
    if len(words) > 4:
        words = [w for w in words if w.lower() in STOP_WORDS or rng.random() > style.thinning]
    thing = _reworded(" ".join(words), rng, style.synonyms)
    if intent.hollow or (len(words) < 3 and rng.random() < 0.35):
        hint = topic(api)
        if rng.random() < 0.4 and about(api):
            hint = _clean_about(rng.choice(about(api)))
        hint = _reworded(hint, rng, style.synonyms / 2)
        thing = rng.choice((f"{hint} {thing}", f"{thing} of {hint}", f"{thing} for {hint}")).strip()
    return thing


def _clean_about(text: str) -> str:
    words = text.split()[:10]
    return " ".join(
        words[1:] if words and words[0].lower() in {"get", "the", "a", "our"} else words
    )


def _reworded(text: str, rng: random.Random, share: float) -> str:
    """Return the text with a share of its known words and two-word phrases exchanged."""
    table, words, out, at = synonyms(), text.split(), [], 0
    while at < len(words):
        for width in (2, 1):
            key = " ".join(words[at : at + width]).lower().strip(",.")
            if len(key.split()) == width and key in table and rng.random() < share:
                out.append(rng.choice(table[key]))
                at += width
                break
        else:
            out.append(words[at])
            at += 1
    return " ".join(out)


def _decorated(api: Api, thing: str, intent: Intent, rng: random.Random, style: Style) -> str:
    before = rng.choice(_BEFORE) if intent.kind == GET else rng.choice(("the ", "a ", "", "my "))
    if thing.split()[:1] and thing.split(maxsplit=1)[0].lower() in STOP_WORDS:
        before = ""
    parts = [before + thing]
    asked = [p for p in api.required if rng.random() < style.values]
    asked += [p for p in api.optional if rng.random() < style.values / 5]
    parts += [_with_value(parameter, rng) for parameter in asked[:3]]
    named = rng.random()
    if named < style.tool:
        tool = topic(api) if rng.random() < 0.4 else api.tool.replace("_", " ").strip()
        parts.insert(rng.choice((1, len(parts))), rng.choice(_FROM_TOOL).format(tool=tool[:60]))
    elif named < style.tool + style.quoted:
        name = api.name if rng.random() < 0.5 else " ".join(spoken(api.name))
        parts.append(rng.choice(_QUOTED).format(name=name[:60]))
    return " ".join(part for part in parts if part)


def _with_value(parameter: Parameter, rng: random.Random) -> str:
    value = spoken_value(parameter, rng)
    name = " ".join(spoken(parameter.name)) or "value"
    if value in _TODAY:
        return value
    if re.search(r"city|country|location|place|address|region", name):
        return rng.choice(_WHERE).format(value=value)
    if re.search(r"date|year|month|day", name):
        return rng.choice(_WHEN).format(value=value)
    return rng.choice(_VALUE).format(name=name, value=value)


def _framed(phrase: str, intent: Intent, rng: random.Random, style: Style) -> str:
    if intent.kind == GET:
        frame = rng.choice(_FRAMES[GET])
        return frame.format(get=rng.choice(_GET_VERBS), np=phrase)
    verb = intent.verb
    if rng.random() < style.synonyms:
        verb = rng.choice((*synonyms().get(verb, ()), verb))
    return rng.choice(_FRAMES[""]).format(verb=verb, np=phrase)
