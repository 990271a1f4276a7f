"""What an API does, as a verb and an object, read from its name and its description.

Documents are written by thousands of hands: "This endpoint returns …", "getUserById",
"GET_videos-videoId-captions", a bare noun, nothing at all. ``intents`` returns every reading
that says something. Pure.
"""

from __future__ import annotations

import html
import re
from dataclasses import dataclass

from toolsrv_registry.api import Api
from toolsrv_registry.words import STOP_WORDS

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
