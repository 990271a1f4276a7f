"""Made-up responses that can serve a need."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from toolsrv_lab.conversations.needs_episodes.kinds import (
    ACTION,
    CATEGORY_THINGS,
    DEFAULTS,
    LISTING,
    LISTING_WORDS,
    RESULTS,
    SINGLE,
    asks_id,
    class_for,
    class_words,
    is_action,
    record_for,
)
from toolsrv_lab.conversations.needs_episodes.schemas import (
    META,
    Maker,
    Response,
    kept_echo,
    leaf_names,
    leaves_of,
    need_tokens,
    overlap,
)
from toolsrv_lab.conversations.needs_episodes.tables import (
    PAGING,
    Shape,
    asked_words,
    class_of_word,
    classes,
    field_pairs,
    split_words,
    topic,
)
from toolsrv_lab.conversations.needs_episodes.values import Inventor
from toolsrv_lab.conversations.wording import word_set
from toolsrv_registry.api import Api

_NAMED_RECORDS = word_set(
    "company country city team player channel word song movie album stockquote vocabulary "
    "profile default car"
)


def listing_words(api: Api, text: str) -> bool:
    """Whether a need or its API's category implies a list."""
    return bool(LISTING.search(text)) or (api.category == "Sports" and not ACTION.match(text))


def invent(
    api: Api,
    text: str,
    schema: Any,
    arguments: Mapping[str, Any],
    inventor: Inventor,
    *,
    with_id: bool = False,
) -> Response:
    """Return a response that can serve a need."""
    rng = inventor.rng
    tokens = need_tokens(text)
    echo = {
        "".join(split_words(key)): value
        for key, value in arguments.items()
        if isinstance(value, (str, int, float))
        and len(str(value)) < 60
        and not isinstance(value, bool)
    }
    for common in (
        "page",
        "limit",
        "offset",
        "date",
        "time",
        "type",
        "format",
        "text",
        "count",
        "status",
    ):
        if rng.random() < 0.7 or common in {"text", "count"}:
            echo.pop(common, None)
    words = class_words(api.name)
    shape = class_for(api, text)
    if shape is None or shape.name not in {"city", "country", "state", "flight", "route"}:
        inventor.here = next(
            (
                v
                for k, v in arguments.items()
                if re.search(r"(?i)city|location|place$|town|near", k)
                and isinstance(v, str)
                and re.fullmatch(r"[A-Z][A-Za-zÀ-ž' -]{2,20}", v)
            ),
            "",
        )
    if shape is None and listing_words(api, text) and api.category in CATEGORY_THINGS:
        wanted = CATEGORY_THINGS[api.category]
        if wanted == "match" and re.search(
            r"(?i)predict|\bbets?\b|\btips?\b|\bsign\b|odds", f"{text} {api.tool}"
        ):
            wanted = "tip"
        shape = next(one for one in classes() if one.name == wanted)
    context = tuple(split_words(api.category)[-1:]) + tuple(split_words(api.name))
    maker = Maker(inventor, tokens, echo, context)
    if schema is not None and not with_id:
        names = leaf_names(schema)
        fit = sum(
            1
            for name in names
            if overlap((name,), tokens) and "".join(split_words(name)) not in echo
        )
        if rng.random() < (0.9 if fit else 0.2):
            for most, size in ((7, 1300), (5, 1300), (4, 1500), (3, 1800)):
                maker.most = most
                body = maker.tree(schema)
                told = [
                    path
                    for path, _ in leaves_of(_first_items(body))
                    if path and path[-1].lower() not in META
                ]
                if not told:
                    break
                if len(json.dumps(body, ensure_ascii=False)) < size:
                    return Response(body, shape.noun if shape else "", (), "schema")
    listing = bool(LISTING.search(text)) or bool(
        shape and any(w in shape.cues and w.endswith("s") for w in words)
    )
    listing = listing or any(w in LISTING_WORDS for w in words)
    if not with_id and schema is None and (asks_id(words, text)):
        key = next((w for w in words if w in class_of_word()), "")
        key = rng.choice((f"{key}_id" if key else "id", "id", f"{key}Id" if key else "id"))
        return Response(
            rng.choice(
                (
                    {key: inventor.kind("id")},
                    {"status": "success", key: inventor.kind("id")},
                    {"data": {key: inventor.kind("code")}},
                )
            ),
            "id",
            (key,),
            "identifier",
        )
    many = re.search(r"(?i)\bhow many ((?:[a-z]+ ){0,2}?[a-z]+s)\b", text)
    if not with_id and (many or "count" in words) and rng.random() < 0.8:
        key = "_".join(many[1].lower().split()) if many else "count"
        key = rng.choice(("count", "total", key, key))
        number = inventor.kind(rng.choice(("smallint", "count", "count")))
        noun = (
            many[1].lower()
            if many
            else " ".join(w for w in topic(api).split() if w != "count") or "entries"
        )
        return Response(
            rng.choice(
                ({key: number}, {"status": "success", key: number}, {"data": {key: number}})
            ),
            noun,
            (key,),
            "count",
        )
    if SINGLE.search(api.name) and not LISTING.search(text):
        listing = False
    own = shape.name if shape else ""
    extra = [
        (name, name)
        for name in _wanted(text)
        if name != own and name not in (shape.noun if shape else "")
    ]
    if shape and (listing or with_id) and not is_action(api, text):
        fields = [*shape.fields]
        fields += [one for one in shape.more if overlap((one[0],), tokens)]
        have = {name for name, _ in fields}
        fields += [one for one in extra if one[0] not in have][: max(0, 5 - len(fields))]
        if with_id or rng.random() < 0.35:
            fields = [("id", "id"), *(one for one in fields if one[0] != "id")]
        if rng.random() < 0.3:
            fields += [one for one in shape.more if one not in fields][:1]
        count = (
            rng.choice((1, 2, 3, 3, 4, 4, 5, 6, 8)) if len(fields) < 6 else rng.choice((1, 2, 3, 4))
        )
        empty = not with_id and rng.random() < 0.05
        maker.echo = kept_echo(maker.echo, rng)
        items = [] if empty else [maker.flat(fields) for _ in range(count)]
        if "rank" in dict(fields) or ("position", "rank") in fields:
            key = "rank" if "rank" in dict(fields) else "position"
            for at, one in enumerate(items, start=1):
                one[key] = at
        if shape.name in {"forecast", "candle", "match", "race", "tip"}:
            ahead = (
                1
                if shape.name != "candle"
                and not re.search(
                    r"(?i)last|past|previous|result|histor|ended|played", f"{api.name} {text}"
                )
                else -1
            )
            gap = 1 if shape.name in {"forecast", "candle"} else rng.choice((1, 3, 7))
            for at, one in enumerate(items):
                if "date" in one:
                    one["date"] = (inventor.now + timedelta(days=ahead * at * gap)).isoformat()
        named = next(
            (
                name
                for name, kind in shape.fields
                if name in {"name", "title", "full_name"}
                and kind
                in {
                    "person",
                    "company",
                    "team",
                    "city",
                    "title",
                    "band",
                    "vtitle",
                    "country",
                    "hotel",
                    "league",
                }
            ),
            "",
        )
        asked_for = next(
            (
                v
                for k, v in arguments.items()
                if re.search(r"(?i)^(?:q|query|name|search|keyword|term|title|text)$|name$", k)
                and isinstance(v, str)
                and 2 < len(v) < 40
                and v[:1].isupper()
            ),
            "",
        )
        if named and asked_for and items and rng.random() < 0.75:
            items[0][named] = asked_for
        body = _wrapped(items, shape, rng)
        return Response(body, shape.noun, tuple(name for name, _ in shape.fields), "list")
    record = record_for(api, text)
    fields = [
        *record.fields,
        *(one for one in record.more if overlap((one[0],), tokens) or rng.random() < 0.25),
    ]
    if record.name == "default" and shape is not None and shape.name != "generic":
        fields = [*shape.fields, *(one for one in shape.more if overlap((one[0],), tokens))]
    elif record.name == "default":
        noun = "_".join(topic(api).split()[-2:])
        known = maker.is_known(noun, "str") or inventor.has_kind(noun)
        kind = (
            noun
            if known
            else rng.choice(("ratio10", "count", "ratio10", "score100", "label", "status"))
        )
        fields = [
            (noun if noun.isidentifier() else "result", kind),
            ("id", "code"),
            ("updated_at", "date"),
        ][: rng.choice((1, 2, 3))]
        if not known:
            whole = f"{api.name} {text}".lower()
            for pattern, instead in DEFAULTS:
                if pattern.search(whole):
                    fields = list(
                        field_pairs(
                            instead.replace("TOPIC", noun if noun.isidentifier() else "result")
                        )
                    )
                    break
            if fields[0][0] == "results":
                items = [maker.flat(fields[1:]) for _ in range(rng.choice((1, 2, 3, 4, 5)))]
                return Response(
                    _wrapped(items, RESULTS, rng),
                    "results",
                    tuple(name for name, _ in fields[1:]),
                    "list",
                )
    have = {name for name, _ in fields}
    if record.name not in {
        "joke",
        "quote",
        "fact",
        "generated",
        "summary",
        "deleted",
        "created",
        "updated",
        "link",
    }:
        fields += [one for one in extra if one[0] not in have][:3]
    inner: Any = maker.flat(fields)
    named = next(
        (key for key in ("name", "title", "word", "symbol", "username") if key in inner), ""
    )
    if named and record.name in _NAMED_RECORDS:
        for key, value in arguments.items():
            usable = (
                isinstance(value, str)
                and 1 < len(value) < 40
                and re.search(r"[A-Za-z]{2}", value)
                and not re.search(r"\d{3}|://", value)
            )
            if (
                usable
                and not PAGING.search(key)
                and not re.search(r"(?i)id$|key$|token|format", key)
            ):
                inner[named] = value
                break
    way = rng.random()
    if way < 0.12:
        inner = {rng.choice(("data", "result", "response")): inner}
    elif way < 0.2:
        inner = {"status": "success", "data": inner}
    elif way < 0.24:
        inner = [inner]
    return Response(
        inner, shape.noun if shape else "", tuple(name for name, _ in record.fields), record.name
    )


def _first_items(body: Any) -> Any:
    """Return a response with the first item in the place of each list of objects."""
    if isinstance(body, Mapping):
        return {key: _first_items(one) for key, one in body.items()}
    if isinstance(body, list) and body and isinstance(body[0], Mapping):
        return {"item": _first_items(body[0])}
    return body


def _wanted(text: str) -> list[str]:
    found: list[str] = []
    for word in re.findall(r"[a-z]+", text.lower()):
        if word in {
            "when",
            "where",
            "who",
            "much",
            "many",
            "long",
            "name",
            "names",
            "title",
            "titles",
            "place",
            "day",
            "called",
            "state",
            "id",
            "ids",
            "list",
        }:
            continue
        for name in sorted(asked_words().get(word, ())):
            if name not in found and name not in {
                "name",
                "title",
                "text",
                "id",
                "description",
                "plot",
            }:
                found.append(name)
                break
    return found


def _wrapped(items: list[dict[str, Any]], shape: Shape, rng: random.Random) -> Any:
    key = rng.choice(
        (shape.noun.replace(" ", "_"), "results", "data", "items", shape.noun.replace(" ", "_"))
    )
    way = rng.random()
    if way < 0.2:
        return items
    if way < 0.4:
        return {key: items, rng.choice(("total", "count")): len(items)}
    if way < 0.5:
        return {"status": "success", key: items}
    return {key: items}
