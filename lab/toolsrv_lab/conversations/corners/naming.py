"""Functions as they are offered: names, keys, schemas."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from toolsrv_lab.conversations.corners.catalog import CODES, Family, split_list
from toolsrv_lab.conversations.corners.values import FORMS
from toolsrv_lab.conversations.episode import Offered
from toolsrv_lab.conversations.wording import WEEKDAYS


@dataclass(frozen=True, slots=True)
class Style:
    """How the functions of one catalog are named."""

    case: str
    prefix: str


def draw_style(rng: Random) -> Style:
    """Draw a naming style."""
    prefix = rng.choice(
        ("",) * 9
        + ("v1", "api", "svc", "my", "city", "nova", "open", "quick", "hub", "core", "acme")
    )
    return Style(rng.choice(("snake", "snake", "snake", "camel", "pascal", "kebab")), prefix)


_VERBS = {"get", "find", "search", "look", "list"}


def _cased(words: Sequence[str], case: str) -> str:
    words = [one.lower() for one in words]
    if case == "camel":
        return words[0] + "".join(one.capitalize() for one in words[1:])
    if case == "pascal":
        return "".join(one.capitalize() for one in words)
    return ("-" if case == "kebab" else "_").join(words)


def function_name(text: str, style: Style, rng: Random) -> str:
    """Return the name of a function in a style."""
    words = re.findall(r"[A-Za-z0-9]+", text)
    if words[0] == "get" and rng.random() < 0.5:
        words[0] = rng.choice(("fetch", "lookup", "read", "show", "query", "retrieve"))
    elif words[0] in {"find", "search"} and rng.random() < 0.3:
        words[0] = rng.choice(("search", "find", "discover", "lookup"))
    elif words[0] not in _VERBS and rng.random() < 0.12:
        words.append(rng.choice(("api", "service", "tool", "v2")))
    if style.prefix:
        words.insert(0, style.prefix)
    return _cased(words, style.case)


def key_name(text: str, style: Style) -> str:
    """Return a key in a style."""
    words = re.findall(r"[A-Za-z]+[0-9]*|[0-9]+", text)
    words = [w for one in words for w in one.split("_")]
    return _cased(words, "camel" if style.case in {"camel", "pascal"} else "snake")


_FORM_NOTES: Mapping[tuple[str, str], Sequence[str]] = {
    ("date", "iso"): (
        "{}, YYYY-MM-DD",
        "{} (ISO 8601 date)",
        "{} as YYYY-MM-DD",
        "ISO date: {}",
        "{}",
    ),
    ("date", "words"): ("{}, in the person's own words", "{} as free text, e.g. 'next Tuesday'"),
    ("date", "dmy"): ("{} as DD/MM/YYYY", "{} in the format DD/MM/YYYY"),
    ("country", "name"): ("{}", "{}, by its English name", "Name of the {}"),
    ("country", "a2"): (
        "{}, ISO 3166-1 alpha-2 code",
        "{} as a two-letter ISO code",
        "{} (e.g. BE)",
    ),
    ("country", "a3"): ("{}, ISO 3166-1 alpha-3 code", "{} as a three-letter code, e.g. BEL"),
    ("lang", "name"): ("{}", "{}, English name", "Name of the {}"),
    ("lang", "a2"): ("{}, ISO 639-1 code", "{} as a two-letter code such as en"),
    ("lang", "a3"): ("{}, ISO 639-3 code", "{} as a three-letter code, e.g. eng"),
    ("cur", "code"): (
        "{}, ISO 4217 code",
        "{} as a three-letter code such as SGD",
        "{} (ISO 4217)",
    ),
    ("cur", "name"): ("{}, by its English name", "{} in words, e.g. 'Swiss francs'"),
    ("dt", "seconds"): (
        "{}, ISO 8601 such as 2025-01-31T18:00:00",
        "{} (YYYY-MM-DDTHH:MM:SS)",
        "{}",
    ),
    ("dt", "minutes"): ("{} as YYYY-MM-DDTHH:MM", "{}, e.g. 2025-01-31T18:00"),
    ("dt", "words"): ("{}, in the person's own words", "{} as free text"),
    ("time", ""): ("{} as HH:MM, 24 hours", "{}, 24-hour clock (HH:MM)"),
    ("month", "number"): ("{}, 1 to 12", "{} as a number from 1 to 12"),
    ("month", "name"): ("{}, English name", "{} by name, e.g. January"),
}

_SAME_NOTES = {"pdate": "date", "rs": "date", "re": "date", "prs": "date", "pre": "date"} | {
    "mcur": "cur",
    "dts": "dt",
    "dte": "dt",
}


def parameter_schema(
    kind: str, form: str, about: str, rng: Random, *, listed: bool = False
) -> dict[str, Any]:
    """Return the JSON Schema of a parameter. ``listed``: an array of such values."""
    head = kind.split(maxsplit=1)[0]
    notes = _FORM_NOTES.get(
        (_SAME_NOTES.get(head, head), form or ("iso" if head != "time" else ""))
    )
    if listed:
        about = rng.choice((f"{about}, one or several", f"list of: {about}", f"all of: {about}"))
    text = rng.choice(notes).format(about) if notes else about
    made: dict[str, Any] = {"type": "string"}
    if head in {"date", "pdate", "rs", "re", "prs", "pre"} and form in {"iso", ""}:
        made["format"] = "date"
    if head in {"dt", "dts", "dte"} and form == "seconds":
        made["format"] = "date-time"
    if head in {"int", "pct", "dur_min", "dur_s", "mass_g", "len_cm", "year"}:
        made["type"] = "integer"
    if head == "month" and form == "number":
        made = {"type": "integer", "minimum": 1, "maximum": 12}
    if head in {"num", "money", "qty"}:
        made["type"] = "number"
    if head == "bool":
        made["type"] = "boolean"
        if rng.random() < 0.3:
            made["default"] = False
    if head in {"enum", "enumint"}:
        options = kind.removeprefix(head).strip().split(";")
        made["enum"] = [int(o) if head == "enumint" else o.split("=")[0] for o in options]
        if head == "enumint":
            made["type"] = "integer"
    if head in {"u1", "u2"}:
        made["enum"] = [row[1] for row in CODES["unit"]]
    if head == "weekday":
        made["enum"] = list(WEEKDAYS) if form == "full" else [d.lower() for d in WEEKDAYS]
    if head == "list" or listed:
        made = {"type": "array", "items": made}
    text = text[0].upper() + text[1:]
    if rng.random() < 0.4:
        text += "."
    made["description"] = text
    return made


@dataclass
class Drawn:
    """A family as one function: its name, keys, forms."""

    family: Family
    offered: Offered
    keys: dict[str, str]
    forms: dict[str, str]
    out_keys: dict[str, str]
    listed: str = ""


def draw_forms(family: Family, rng: Random) -> dict[str, str]:
    """Draw the form that each parameter takes its values in."""
    made = {}
    for name, param in family.params.items():
        head = param.kind.split()[0]
        made[name] = rng.choice(FORMS[head]) if head in FORMS else ""
    starts = [n for n, p in family.params.items() if p.kind == "dts"]
    for name, param in family.params.items():
        if param.kind == "dte" and starts:
            made[name] = made[starts[0]]
    return made


def draw(
    family: Family,
    style: Style,
    rng: Random,
    *,
    listed: str = "",
    forms: Mapping[str, str] | None = None,
) -> Drawn:
    """Return one function that serves the family. ``listed``: the argument that takes several."""
    chosen = dict(forms or draw_forms(family, rng))
    keys, out_keys = {}, {}
    properties: dict[str, Any] = {}
    needed = []
    order = list(family.params)
    if rng.random() < 0.25:
        rng.shuffle(order)
    taken: set[str] = set()
    for name in order:
        param = family.params[name]
        options = [key_name(one, style) for one in param.keys]
        options = [one for one in options if one not in taken] or [f"{options[0]}2"]
        key = rng.choice(options)
        taken.add(key)
        if name == listed:
            key = key_name(_plural(rng.choice(param.keys)), style)
        keys[name] = key
        about = param.about if rng.random() < 0.8 else rng.choice(("the ", "")) + param.about
        properties[key] = parameter_schema(
            param.kind, chosen[name], about, rng, listed=name == listed
        )
        if param.needed:
            needed.append(key)
    for name, out in family.outs.items():
        out_keys[name] = key_name(rng.choice(out.keys), style)
    about = rng.choice(family.abouts)
    offered = Offered(
        function_name(rng.choice(family.names), style, rng),
        about,
        {"type": "object", "properties": properties, "required": needed},
    )
    return Drawn(family, offered, keys, chosen, out_keys, listed)


def _plural(word: str) -> str:
    if word.endswith("y") and not word.endswith(("ey", "ay")):
        return word[:-1] + "ies"
    return word + ("es" if word.endswith(("s", "x", "ch")) else "s")


_NEAR_ABOUT = {
    "from": "start",
    "to": "end",
    "city": "city",
    "country": "country",
    "date": "day, YYYY-MM-DD",
    "limit": "how many at most",
}


def near(one: tuple[str, str, str], style: Style, rng: Random) -> Offered:
    """Return a function of near name that does not serve the family."""
    name, about, params = one
    properties = {}
    for part in split_list(params, ","):
        key, _, kind = part.partition(":")
        if key == "none":
            continue
        made: dict[str, Any] = {"type": kind if kind in {"integer", "number"} else "string"}
        if kind in {"date", "datetime"}:
            made["format"] = "date" if kind == "date" else "date-time"
        made["description"] = _NEAR_ABOUT.get(key, key.replace("_", " ")).capitalize() + "."
        properties[key_name(key, style)] = made
    needed = list(properties)[: rng.randint(1, 3)]
    return Offered(
        function_name(name, style, rng),
        about,
        {"type": "object", "properties": properties, "required": needed},
    )


def stems(text: str) -> set[str]:
    """Return the stems of a name's words that carry meaning."""
    dull = {
        "get",
        "find",
        "of",
        "a",
        "the",
        "for",
        "by",
        "in",
        "on",
        "and",
        "list",
        "set",
        "to",
        "day",
    }
    return {w.rstrip("s") for w in re.findall("[a-z]+", text.lower())} - dull


def serves(one: tuple[str, str, str], family: Family) -> bool:
    """Whether a near function could serve the family after all."""
    words = stems(one[0])
    for name in family.names:
        other = stems(name)
        if other and (other <= words or words <= other):
            return True
        if len(other & words) >= 2:
            return True
    return False
