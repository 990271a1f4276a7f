"""What an API lists or returns: kinds of things and records, by names and words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

from toolsrv_lab.conversations.needs_episodes.tables import (
    Shape,
    class_of_word,
    classes,
    field_pairs,
    records,
    split_words,
    stem,
)
from toolsrv_lab.conversations.wording import word_set
from toolsrv_registry.api import Api


@cache
def _cues() -> tuple[str, ...]:
    return tuple(
        sorted((cue for cue in class_of_word() if len(cue) > 3), key=lambda one: -len(one))
    )


@cache
def class_words(name: str) -> tuple[str, ...]:
    """Return the words of a name, of one word in which others are run together the last."""
    out = []
    for whole in split_words(name):
        word = re.sub(r"(?:details?|by\w*id|byid|v\d|json)$", "", whole) or whole
        if len(word) > 7 and word not in class_of_word():
            word = next((cue for cue in _cues() if word.endswith(cue)), word)
        out.append(word)
    return tuple(out)


def class_for(api: Api, text: str) -> Shape | None:
    """Return the kind of things that an API lists: by its name's head, by the need, by the rest."""
    table = class_of_word()
    words = class_words(api.name)
    cut = next(
        (
            at
            for at, word in enumerate(words)
            if at and word in {"by", "for", "from", "with", "in", "using"}
        ),
        len(words),
    )
    of = words.index("of") if "of" in words[:cut] else 0
    if of and any(word in table for word in words[:of]):
        cut = of
    for word in reversed(words[:cut]):
        if word in table:
            return _sorted_out(table[word], word, api)
    unknown = _generic(words[:cut], text)
    if unknown:
        return unknown
    said = [
        word
        for word in re.findall(r"[a-z]+", text.lower())[:14]
        if word in table and word.endswith("s")
    ]
    if said:
        return _sorted_out(table[said[0]], said[0], api)
    for word in reversed(words[cut:]):
        if word in table:
            return _sorted_out(table[word], word, api)
    return None


def _sorted_out(shape: Shape, word: str, api: Api) -> Shape:
    """Return the kind of an ambiguous word in the API's category."""
    named = {one.name: one for one in classes()}
    if (
        shape.name == "match"
        and api.category not in {"Sports", "Gaming"}
        and not re.search(r"(?i)bet|odds|sport|score|football|cricket", api.tool)
    ):
        return named["event_public"]
    homes = re.search(
        r"(?i)airbnb|zillow|real|propert|estate|rent|home|immo|house|redfin|realt",
        f"{api.tool} {api.name}",
    )
    if (
        shape.name == "movie"
        and word in {"title", "titles"}
        and api.category not in {"Movies", "Entertainment", "Video_Images", "News_Media"}
    ):
        return (
            named["job"]
            if "job" in api.name.lower()
            else Shape("generic", frozenset({word}), word, field_pairs("id name:title status"), ())
        )
    if shape.name == "property" and not homes:
        return named["product"]
    if shape.name == "product" and word in {"listing", "listings"} and homes:
        return named["property"]
    if shape.name == "stock" and re.search(
        r"(?i)crypto|coin|binance|bitcoin|token", f"{api.tool} {api.name}"
    ):
        return named["coin"]
    return shape


_NO_THINGS = word_set(
    "points requests minutes hours days results growths keywords terms videosearches "
    "details stats statistics news series status metrics analytics this address business"
)


def _generic(words: Sequence[str], text: str) -> Shape | None:
    """Return a kind of things that no table has, named by a plural in the API's name."""
    said = set(re.findall(r"[a-z]+", text.lower()))
    for word in reversed(words):
        fits = (
            word.endswith("s")
            and word not in class_of_word()
            and len(word) > 4
            and word not in _NO_THINGS
            and not word.endswith(("ss", "us", "is"))
        )
        if fits and (word in said or len(word) < 14):
            return Shape(
                "generic",
                frozenset({word}),
                word,
                field_pairs("id name:title status"),
                field_pairs("created_at url"),
            )
    return None


LISTING = re.compile(
    r"(?i)\b(?:list|every|enumerate|who are|all (?:the |of |my )?\w+s|which \w+s|what (?:\w+ )?(?!is\b|was\b|does\b|has\b)\w{3,}s\b"
    r"|(?:top|latest|best|trending|popular|recent|upcoming|newest|biggest|hottest|any|similar|some) (?:\d+ )?(?:\w+ )?\w{3,}s\b)"
)

SINGLE = re.compile(r"(?i)\b(?:details?|detail|info|one|single|profile|by id|about|random)\b")

ACTION = re.compile(
    r"(?i)^(?:please |kindly |could you |can you |i want to |i'd like to )?(create|add|delete|remove|cancel|update|edit|change|"
    r"register|book|submit|subscribe|upload|send|schedule|post|rename|set|reset|move|sign me|unsubscribe)\b"
)


@cache
def _stems(shape: Shape) -> frozenset[str]:
    return frozenset(stem(cue) for cue in shape.cues if cue)


_ACTING = word_set(
    "create add delete remove update unlike unfollow follow block mute unmute mark send "
    "upload cancel destroy subscribe unsubscribe register submit rename move copy"
)


def is_action(api: Api, text: str) -> bool:
    """Whether a need changes something."""
    words = split_words(api.name)
    return bool(
        ACTION.match(text) or (api.method != "GET" and (set(words[:1]) | set(words[-1:])) & _ACTING)
    )


def record_for(api: Api, text: str) -> Shape:
    """Return the kind of record that serves a need best."""
    name = {stem(w) for w in split_words(api.name)}
    said = {stem(w) for w in re.findall(r"[a-z]+", text.lower())}
    about = {stem(w) for w in split_words(api.tool)}
    described = {stem(w) for w in re.findall(r"[a-z]+", api.description.lower())[:25]}
    by_name = {shape.name: shape for shape in records()}
    whole = f"{api.name} {text}".lower()
    if re.search(r"e-?mail|\bmailbox|inbox", whole):
        if re.search(r"valid|verif|check|dispos|exist|real\b|deliver|right|bounce", whole):
            return by_name["email"]
        if not is_action(api, text):
            return by_name["mail"]
    best, most = records()[-1], 0.0
    for shape in records():
        cues: set[str] | frozenset[str] = _stems(shape)
        if shape.name == "count" and re.search(r"(?i)\bhow many\b|\bcount\b", text):
            cues = cues | said
        score = (
            3.0 * len(cues & name)
            + 1.5 * len(cues & said)
            + 0.7 * len(cues & about)
            + 0.5 * len(cues & described)
        )
        if shape.name in {"created", "deleted", "updated"} and not is_action(api, text):
            score *= 0.2
        if shape.name == "image" and re.search(
            r"(?i)picture|photo|image|avatar|logo|screenshot", f"{api.name} {text}"
        ):
            score *= 1.5
        if shape.name == "rate" and not re.search(
            r"(?i)currenc|exchange|forex|rates?\b|crypto|coin|dollar|euro\b|fiat",
            f"{api.name} {api.tool} {text}",
        ):
            score *= 0.2
        if shape.name == "valid" and not (
            re.match(r"(?i)\s*(?:is|are|does|do|can)\b", text)
            or re.search(r"(?i)valid|verif", api.name)
        ):
            score *= 0.2
        if score > most:
            best, most = shape, score
    if best.name == "quote" and api.category in {"Finance", "Financial", "Business", "Commerce"}:
        return by_name["stockquote"]
    if best.name == "price" and api.category in {"Finance", "Financial"} and is_about_stocks(api):
        return by_name["stockquote"]
    return best if most >= 2.0 else records()[-1]


def is_about_stocks(api: Api) -> bool:
    """Whether an API of a finance category is about securities rather than money in general."""
    return (
        re.search(
            r"(?i)stock|quote|symbol|ticker|share", f"{api.name} {api.tool} {api.description[:80]}"
        )
        is not None
    )


CATEGORY_THINGS = {
    "Sports": "match", "Finance": "stock", "Financial": "transaction", "Music": "song", "Movies": "movie", "Social": "post",
    "News_Media": "news", "Travel": "hotel", "Gaming": "game", "eCommerce": "product", "Jobs": "job", "Weather": "forecast",
    "Location": "city", "Mapping": "poi", "Entertainment": "show", "Video_Images": "image", "Commerce": "product",
}  # fmt: skip

LISTING_WORDS = word_set(
    "search list all trending top recent latest feed rotation history suggest autosuggest "
    "autocomplete upcoming"
)


def asks_id(words: Sequence[str], text: str) -> bool:
    """Whether a need asks for an identifier."""
    by_name = words[-1:] in (("id",), ("uuid",)) and not {"by", "from", "with"} & set(words)
    by_need = re.search(
        r"(?i)\b(?:identifier|uuid|which id|what id|internal number|numeric id|whose id)\b", text
    )
    return bool(by_name or by_need) and not re.search(
        r"(?i)\b(?:details|profile|price|about)\b", text
    )


RESULTS = Shape("results", frozenset({"results"}), "results", (), ())

# What stands in a response that no other table tells, by words of the API's name and the need.
DEFAULTS: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), fields)
    for pattern, fields in (
        (
            r"search|find\b|serp|autosuggest|suggest|who comes up|look for",
            "results title:vtitle url",
        ),
        (r"\bgas\b|petrol|fuel|diesel", "regular:odds diesel:odds date"),
        (r"ocr|scan|card i uploaded|recogni", "name:person document_number:code birth_date"),
        (
            r"translat|rewrite|insult|phrase|sentence|story|roast|pick.?up|hexagram|meaning|overview|tafsir|commentary",
            "text:generated",
        ),
        (r"mortgage|monthly|payment|loan", "monthly_payment:amount total:amount"),
        (
            r"cor+el|midpoint|minmax|average|moving|ratio|rsi|indicator|oscillat|deviation|variance|beta|momentum",
            "date value:ratio10",
        ),
        (
            r"how (?:much|big|high|far|long|often|many)|\brate\b|\blevel|percent|score|highest|lowest|number of|worth|volume|size",
            "TOPIC:ratio10 date",
        ),
        (
            r"^\S+ (?:is|are|does|do|has|have|can) (?!you)|available|exist",
            "available:true TOPIC:status",
        ),
        (
            r"config|setting|detail|info|definition|defined|by.?id|read|view|access|gateway|collection|resource|account",
            "id:code name:title status created_at:date",
        ),
        (r"where|location|track", "address:fulladdress latitude longitude"),
        (r"when|calendar|schedule|deadline", "date TOPIC:status"),
        (r"test|echo|try|connect|reach|ping", "status:okst response_time_ms:ms"),
        (r"", "id:code name:title status date"),
    )
)
