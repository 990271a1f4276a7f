"""Uses of functions: words, calls, responses, sentences."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, timedelta
from random import Random
from typing import Any

from toolsrv_lab.conversations.corners.catalog import VALUES, Family, split_list
from toolsrv_lab.conversations.corners.naming import Drawn, Style, draw
from toolsrv_lab.conversations.corners.values import Fill, Told, code, mark_value


def wrap_outs(rng: Random, shown: Mapping[str, Any], echo: Mapping[str, Any]) -> Any:
    """Return a response that holds the fields, in one of many shapes."""
    kind = rng.randrange(12)
    body = dict(shown)
    if kind in {0, 1, 2}:
        return {**echo, **body} if rng.random() < 0.5 else body
    if kind == 3:
        return {"data": {**echo, **body}}
    if kind == 4:
        return {"result": body}
    if kind == 5:
        return {"status": "ok", "data": body}
    if kind == 6:
        return [{**echo, **body}]
    if kind == 7:
        return {"request": dict(echo), "response": body}
    if kind == 8:
        return {"results": [{**echo, **body}], "count": 1}
    if kind == 9:
        return {"ok": True, **body}
    if kind == 10 and all(not isinstance(v, (dict, list)) for v in body.values()):
        return "; ".join(f"{k.replace('_', ' ')}: {as_text(v)}" for k, v in body.items())
    return {"meta": {"took_ms": rng.randint(2, 900), "cached": rng.random() < 0.5}, "item": body}


def as_text(value: Any) -> str:
    """Return a value as a sentence shows it."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def generated(gen: str, rng: Random, now: date, arguments: Mapping[str, Any]) -> Any:
    """Return a value for a field of a response."""
    head, *rest = gen.split()
    if head == "n":
        digits = int(rest[2])
        number = round(rng.uniform(float(rest[0]), float(rest[1])), digits)
        return number if number != int(number) else round(number + 10**-digits, digits)
    if head == "i":
        return rng.randint(int(rest[0]), int(rest[1]))
    if head == "time":
        low, high = int(rest[0]), int(rest[1])
        return f"{rng.randint(low, high):02}:{rng.randint(0, 59):02}"
    if head == "pick":
        return rng.choice(split_list(gen.removeprefix("pick"), ";"))
    if head == "fdate":
        return (now + timedelta(days=rng.randint(1, 160))).isoformat()
    if head == "hdate":
        return (now - timedelta(days=rng.randint(1, 900))).isoformat()
    if head == "ydate":
        year = int(arguments.get(rest[0], now.year))
        return date(year, rng.choice((1, 1, 2, 3)), rng.randint(1, 28)).isoformat()
    if head == "code":
        return code(rest[0], rng)
    if head == "tel":
        return rng.choice(VALUES["phone"])[:-3] + f"{rng.randint(0, 999):03}"
    if head == "echo":
        return arguments.get(rest[0])
    if head == "city":
        return rng.choice(VALUES["city"])
    if head.startswith("@"):
        return rng.choice(VALUES[head[1:]])
    raise ValueError(gen)


@dataclass
class Need:
    """One use of a function: the request, its call and response, and the answer."""

    drawn: Drawn
    fill: Fill
    rng: Random
    now: date
    asked: str = ""
    fragment: str = ""
    kind: str = ""
    told: list[str] = field(default_factory=list)
    values: dict[str, Any] = field(default_factory=dict)
    response: Any = None
    silent: set[str] = field(default_factory=set)

    @property
    def family(self) -> Family:
        """What it is a use of."""
        return self.drawn.family

    def arguments(self) -> dict[str, Any]:
        """Return the call's arguments, in the order of the schema."""
        back = {key: name for name, key in self.drawn.keys.items()}
        properties = self.drawn.offered.parameters["properties"]
        return {
            k: self.fill.told[back[k]].argument for k in properties if back[k] in self.fill.told
        }

    def slot(
        self, text: str, *, answer: bool = False, held: Mapping[str, str] | None = None
    ) -> str:
        """Return the text with its slots filled."""

        def one(match: re.Match[str]) -> str:
            name, _, how = match[1].partition(":")
            if held and name in held:
                return held[name]
            if name in self.values and name not in self.fill.told:
                return self.shown(name)
            told = self.fill.told[name]
            if not answer:
                return told.bare if how == "bare" else told.text
            if told.iso and "|" not in told.iso and self.rng.random() < 0.25:
                return told.iso if how == "bare" else f"on {told.iso}"
            return told.plain_bare if how == "bare" else told.plain

        told = self.fill.told.get("year")
        if told and told.plain.split()[0] in {"this", "last", "next"}:
            text = text.replace("in {year}", "{year}")
        return re.sub(r"\{([a-zA-Z_:]+)\}", one, text)

    def shown(self, name: str) -> str:
        """Return a field's value as the answer shows it."""
        value = as_text(self.values[name])
        unit = self.family.outs[name].unit
        if not unit or value.endswith(unit):
            return value
        return value + (unit if unit == "%" else f" {unit}")

    def answer_fields(self) -> None:
        """Make the response's values."""
        rng = self.rng
        plain = {name: told.argument for name, told in self.fill.told.items()}
        for name, out in self.family.outs.items():
            self.values[name] = generated(out.gen, rng, self.now, plain)
        if self.family.key == "temp" and "fahrenheit" in [str(v) for v in plain.values()]:
            self.values["temperature"] = round(self.values["temperature"] * 1.8 + 32, 1)
        if self.family.key == "daysuntil":
            told = self.fill.told["date"].argument
            if re.fullmatch(r"\d{4}-\d\d-\d\d", str(told)):
                days = (date.fromisoformat(told) - self.now).days
                self.values["days"] = days if "workdays" not in self.fill.told else days * 5 // 7

    def body(self) -> dict[str, Any]:
        """Return the fields as a response shows them."""
        rng = self.rng
        made: dict[str, Any] = {}
        names = list(self.family.outs)
        if rng.random() < 0.25:
            rng.shuffle(names)
        for name in names:
            skipped = name != self.asked and name not in self._done_fields()
            if skipped and rng.random() < 0.25 and (made or name != names[-1]):
                continue
            out = self.family.outs[name]
            key, value = self.drawn.out_keys[name], self.values[name]
            if key in made:
                key = f"{key}_value"
            if not out.unit:
                made[key] = value
                continue
            how = rng.randrange(3)
            if how == 0:
                made[key] = f"{as_text(value)}{'' if out.unit == '%' else ' '}{out.unit}"
            elif how == 1:
                made[key] = {"value": value, "unit": out.unit}
            else:
                made[key] = value
                made[f"{key}_unit"] = out.unit
        return made

    def _done_fields(self) -> set[str]:
        return {name for text in self.family.done for name in re.findall(r"\{(\w+)", text)}

    def echo(self) -> dict[str, Any]:
        """Return the arguments that the service repeats in its response."""
        made = {key: value for key, value in self.arguments().items() if self.rng.random() < 0.6}
        for told in self.fill.told.values():
            if told.name:
                made["name"] = told.name
        return made

    def respond(self) -> None:
        """Make the response."""
        self.answer_fields()
        names = self.fill.shown_name()
        shown = wrap_outs(self.rng, self.body(), self.echo())
        if names and not all(
            name in json.dumps(shown, ensure_ascii=False) for name in names.values()
        ):
            if isinstance(shown, dict):
                shown = {**names, **shown}
            elif isinstance(shown, list):
                shown = [{**names, **shown[0]}]
            else:
                shown = f"{names['name']} - {shown}"
        self.response = shown

    def ask(self, held: Mapping[str, str] | None = None, *, only: str = "") -> None:
        """Make the words of the need. ``held``: slots that other words fill."""
        rng, family = self.rng, self.family
        if family.told_does:
            name, sign, text, said = rng.choice(family.told_does)
            said_part = said
            marked = self.slot(text, held=held)
            place = marked.find(said_part)
            marked = (
                marked[:place]
                + mark_value(f"{self.fill.step}.{name}", said_part)
                + (marked[place + len(said_part) :])
            )
            self.fill.told[name] = Told("", "", "", "", sign)
            self.fragment, self.kind = marked, "q" if text.startswith(("it's", "i want")) else "do"
        elif family.acts:
            self.fragment, self.kind = self.slot(rng.choice(family.does), held=held), "do"
        else:
            options: list[tuple[str, str, str]] = [
                ("q", text, name) for text, name in family.asks if not only or name == only
            ]
            for scope in family.scopes:
                for name, out in family.outs.items():
                    if only and name != only:
                        continue
                    options += [("np", f"the {label} {scope}", name) for label in out.labels]
            if not options:
                options = [("q", text, name) for text, name in family.asks]
            if rng.random() < 0.4 and any(one[0] == "q" for one in options):
                options = [one for one in options if one[0] == "q"]
            self.kind, text, self.asked = rng.choice(options)
            self.fragment = self.slot(text, held=held)
        for name in self.told:
            sign_ = self.fill.told[name].argument
            phrases = [p for s, p in family.says[name] if not s or (s == "+") == (sign_ is True)]
            raw = rng.choice(phrases)
            if "{" in raw:
                part = self.slot(raw)
            else:
                head = ", " if raw.startswith(",") else ""
                part = head + mark_value(f"{self.fill.step}.{name}", raw.lstrip(", "))
            self.fragment += part if part.startswith(",") else f" {part}"

    def sentence(self) -> str:
        """Return the answer to the request, as one sentence."""
        rng, family = self.rng, self.family
        if family.acts:
            return sentence_case(self.slot(rng.choice(family.done), answer=True)) + "."
        return re.sub(r"\b1 days\b", "1 day", self._answer())

    def _answer(self) -> str:
        rng, family = self.rng, self.family
        texts = family.answers.get(self.asked, ())
        out = family.outs[self.asked]
        if texts and (rng.random() < 0.6 or not out.labels or not family.scopes):
            return sentence_case(self.slot(rng.choice(texts), answer=True)) + "."
        value = self.shown(self.asked)
        if not out.labels or not family.scopes:
            return f"It is {value}."
        label = rng.choice(out.labels)
        scope = self.slot(rng.choice(family.scopes), answer=True)
        verb = "are" if out.plural else "is"
        forms = (
            f"The {label} {scope} {verb} {value}.",
            f"The {label} {scope} {verb} {value}.",
            f"The {label} {scope}: {value}.",
            f"The {label} {scope} {verb} given as {value}.",
            f"You asked for the {label} {scope}: {value}.",
            f"{value} – that {verb} the {label} {scope}.",
            f"{sentence_case(scope)}, the {label} {verb} {value}."
            if scope.startswith(("in ", "at ", "for ", "from ", "on "))
            else f"The {label} {scope} {verb} {value}.",
            f"For the {label} {scope} I got {value}.",
            f"According to the service, the {label} {scope} {verb} {value}.",
            f"{'They are' if out.plural else 'It is'} {value}.",
            f"It says {value} for the {label} {scope}.",
        )
        return rng.choice(forms)


def sentence_case(text: str) -> str:
    """Return a text with a capital first letter, unless it starts with a code."""
    return text[:1].upper() + text[1:] if not re.match(r"\S*[\d/.@_]", text) else text


def make_need(
    family: Family,
    rng: Random,
    now: date,
    step: str,
    style: Style,
    *,
    lower: bool = False,
    told: float = 0.3,
    listed: str = "",
    forms: Mapping[str, str] | None = None,
    drawn: Drawn | None = None,
    given: Mapping[str, Told] | None = None,
    only: str = "",
    held: Mapping[str, str] | None = None,
) -> Need:
    """Return one use of a family. ``told``: probability of an optional argument."""
    drawn = drawn or draw(family, style, rng, listed=listed, forms=forms)
    fill = Fill(rng, now, step, lower=lower)
    need = Need(drawn, fill, rng, now)
    if given:
        fill.told.update(given)
        need.silent = set(given)
    for name, param in family.params.items():
        if name in fill.told or (held and name in held):
            continue
        if param.kind == "bool":
            if not param.needed and name in family.says and rng.random() < told:
                sign = rng.choice([s for s, _ in family.says[name]])
                fill.told[name] = Told("", "", "", "", sign == "+")
                need.told.append(name)
            continue
        if not param.needed and (name not in family.says or rng.random() >= told):
            continue
        for _ in range(20):
            fill.value(name, param.kind, drawn.forms[name], family)
            now_told = fill.told.get(name)
            twins = [
                t
                for other, t in fill.told.items()
                if other != name
                and now_told
                and t.argument == now_told.argument
                and family.params[other].kind.split()[0] == param.kind.split()[0]
                and param.kind.split()[0]
                in {"city", "country", "cur", "@port", "@station", "@drug"}
            ]
            money = [t for o, t in fill.told.items() if o != name and param.kind == "cur"]
            if param.kind == "cur" and any(t.argument == fill.told[name].argument for t in money):
                continue
            if not twins:
                break
        if not param.needed and param.kind.split()[0] != "bool":
            need.told.append(name)
    need.ask(held, only=only)
    return need


def answer_need(need: Need) -> None:
    """Make the need's response, once its arguments are settled."""
    need.respond()
