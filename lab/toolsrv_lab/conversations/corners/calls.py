"""Episodes with one call, several calls, and answers that compare responses.

One function for many values, lists, two functions; dates, numbers, options, texts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from random import Random
from typing import Any

from toolsrv_lab.conversations.corners.catalog import AROUND, FAMILIES, Family
from toolsrv_lab.conversations.corners.naming import draw
from toolsrv_lab.conversations.corners.needs import Need, sentence_case
from toolsrv_lab.conversations.corners.tasks import Corner, carried, offer, step_of
from toolsrv_lab.conversations.corners.values import Fill, joined, mark_value
from toolsrv_lab.conversations.episode import Episode

_VARIED = ("city", "country", "lang", "@")


def vary(family: Family) -> str:
    """The argument in which several things may stand."""
    for name, param in family.params.items():
        kind = param.kind
        if not param.needed or kind.startswith("@@"):
            continue
        if kind in {"city", "country", "lang", "email", "phone"} or kind.startswith(("@", "code")):
            return name
    return ""


_SEVERAL = [f for f in FAMILIES.values() if not f.acts and vary(f)]

_LIST_HEADS = (
    "each of {x}",
    "all of {x}",
    "{x} (each of them)",
    "{x}",
    "{x}",
    "{x}",
    "{x}, one by one",
)

_TWO_HEADS = ("both {x}", "both {x}", "{x}", "{x}")

_FOR_EACH = (
    "For each of {items}: {f}",
    "{items}. For every one of them, {f}",
    "I have these here: {items}. {f}",
    "Go through {items} and say {f}",
    "Compare {items}: {f}",
    "{items} – {f}",
    "About {items}: {f}",
    "Here is my list, {items}. For each one I want this: {f}",
)

_AND_TOO = (
    "{f}, and the same for {b}",
    "{f}, and {b} too",
    "{f}. Same for {b}",
    "{f}. And for {b}?",
    "{f}? Then {b} as well",
    "{f}, likewise {b}",
    "{f} – and what about {b}",
    "{f} + {b}",
)


def others_like(corner: Corner, first: Need, name: str, count: int) -> list[Need]:
    """Further uses that differ in one argument."""
    family, rng = first.family, corner.rng
    needs = [first]
    tries = 0
    while len(needs) < count and tries < 60:
        tries += 1
        step = str(len(needs))
        fill = Fill(rng, corner.now, step, lower=corner.lower)
        fill.value(name, family.params[name].kind, first.drawn.forms[name], family)
        if any(fill.told[name].argument == n.fill.told[name].argument for n in needs):
            continue
        if any(fill.told[name].argument == told.argument for told in first.fill.told.values()):
            continue
        need = Need(first.drawn, fill, rng, corner.now, first.asked, "", first.kind)
        for other, told in first.fill.told.items():
            if other != name:
                fill.told[other] = told
                need.silent.add(other)
        needs.append(need)
    return needs


def _spread_texts(corner: Corner, needs: Sequence[Need], name: str) -> str:
    """Return marked sentence(s) that ask the same of several things."""
    rng, first = corner.rng, needs[0]
    items = [need.fill.told[name].text for need in needs]
    whole = items

    def served(text: str) -> str:
        for number in range(len(needs)):
            text = mark_value(f"#{number}", text)
        return text

    if len(needs) == 2 and rng.random() < 0.3:
        first.ask()
        carrier = rng.choice(_AND_TOO)
        return served(carrier.replace("{f}", first.fragment).replace("{b}", whole[1]))
    if rng.random() < 0.3 and first.family.scopes:
        scopes = [s for s in first.family.scopes if "{" + name in s]
        labels = first.family.outs[first.asked].labels if first.asked else ()
        if scopes and labels:
            text = f"the {rng.choice(labels)}"
            rest = [n for n in re.findall(r"\{(\w+)", scopes[0]) if n != name]
            if not rest and not first.told:
                carrier = rng.choice(_FOR_EACH)
                return served(carrier.replace("{items}", joined(whole, rng)).replace("{f}", text))
    heads = _TWO_HEADS if len(needs) == 2 else _LIST_HEADS
    listed = rng.choice(heads).replace("{x}", joined(whole, rng))
    first.ask({name: listed}, only=first.asked)
    carrier = rng.choice(AROUND[first.kind])
    return carrier.replace("{x}", served(first.fragment))


def _several(corner: Corner, family: Family, count: int) -> tuple[list[Need], str, str]:
    name = vary(family)
    first = corner.need(family, told=0.15)
    needs = others_like(corner, first, name, count)
    sentence = _spread_texts(corner, needs, name)
    for need in needs:
        need.asked, need.kind = first.asked, first.kind
    return needs, sentence, name


def entity(need: Need, name: str) -> str:
    """Return the words for one of several values."""
    told = need.fill.told[name]
    return told.plain_bare


def _joined_answer(needs: Sequence[Need], name: str, sentences: Sequence[str], rng: Random) -> str:
    shown = [(entity(need, name), need.shown(need.asked)) for need in needs]
    out = needs[0].family.outs[needs[0].asked]
    if rng.random() < 0.35 or any(s.count(" ") < 4 for s in sentences):
        pairs = [f"{who}: {what}" for who, what in shown]
        label = rng.choice(out.labels) if out.labels else ""
        forms = [", ".join(pairs) + ".", "; ".join(pairs) + "."]
        if label:
            body = joined([f"{what} for {who}" for who, what in shown], rng)
            forms += [f"The {label} is {body}.", f"{sentence_case(label)}: {', '.join(pairs)}."]
        return rng.choice(forms)
    if rng.random() < 0.4:
        texts_ = [s.rstrip(".") for s in sentences]
        usual = r"(The|It|There|You|Your|In|At|For|From|According|They|A|What|Low|High) "
        if all(re.match(usual, one) for one in texts_[1:]):
            rest = [one[0].lower() + one[1:] for one in texts_[1:]]
            return "; ".join([texts_[0], *rest]) + "."
        return " ".join(sentences)
    return " ".join(sentences)


def several(rng: Random) -> Episode:
    """One function, called for each of several things."""
    corner = Corner(rng)
    family = rng.choice(_SEVERAL)
    needs, text, name = _several(corner, family, rng.choice((2, 2, 2, 3, 3, 4)))
    for need in needs:
        need.respond()
    task, found = corner.task([text])
    sentences = [need.sentence() for need in needs]
    steps = [step_of(n, found, sentence=s) for n, s in zip(needs, sentences, strict=True)]
    functions = offer([needs[0].drawn.offered], [family], corner.style, rng)
    return corner.episode(task, functions, steps, _joined_answer(needs, name, sentences, rng))


def listed(rng: Random) -> Episode:
    """One function that takes all of them in one call."""
    corner = Corner(rng)
    family = rng.choice(_SEVERAL)
    name = vary(family)
    drawn = draw(family, corner.style, rng, listed=name)
    first = corner.need(family, told=0.15, drawn=drawn)
    needs = others_like(corner, first, name, rng.choice((2, 3, 3, 4)))
    items = [need.fill.told[name].text for need in needs]
    listing = mark_value("0.list", joined(items, rng))
    if rng.random() < 0.6:
        first.ask({name: listing}, only=first.asked)
        text = rng.choice(AROUND[first.kind]).replace("{x}", mark_value("#0", first.fragment))
    else:
        heads = _TWO_HEADS if len(needs) == 2 else _LIST_HEADS
        first.ask({name: rng.choice(heads).replace("{x}", listing)}, only=first.asked)
        text = rng.choice(AROUND[first.kind]).replace("{x}", mark_value("#0", first.fragment))
    records = []
    key = rng.choice(("item", "name", "for", "query", family.params[name].keys[0]))
    for need in needs:
        need.asked = first.asked
        need.answer_fields()
        records.append({key: need.fill.told[name].argument, **need.body()})
    response: Any = records
    if rng.random() < 0.3:
        response = {"results": records}
    elif rng.random() < 0.3:
        response = {str(one.pop(key)): one for one in records}
    task, found = corner.task([text])
    arguments = first.arguments()
    arguments[drawn.keys[name]] = [need.fill.told[name].argument for need in needs]
    said = {drawn.keys[name]: found["0.list"]}
    for other, told_key in drawn.keys.items():
        if f"0.{other}" in found and other != name:
            said[told_key] = found[f"0.{other}"]
    for need in needs:
        named = need.fill.told[name].name
        if named and not isinstance(response, str) and named not in json.dumps(response):
            response = {"names": [n.fill.told[name].name for n in needs], "results": records}
    answer = _joined_answer(needs, name, [need.sentence() for need in needs], rng)
    step = step_of(first, found, arguments=arguments, said=said, response=response, sentence=answer)
    functions = offer([drawn.offered], [family], corner.style, rng)
    return corner.episode(task, functions, [step], answer)


def two_families(rng: Random) -> tuple[Family, Family]:
    """Draw two families, of one group where possible."""
    first = rng.choice(list(FAMILIES.values()))
    pool = [f for f in FAMILIES.values() if f is not first]
    like = [f for f in pool if f.group == first.group]
    second = rng.choice(like) if like and rng.random() < 0.5 else rng.choice(pool)
    return first, second


def _join_sentences(sentences: Sequence[str], rng: Random) -> str:
    if len(sentences) > 1 and rng.random() < 0.3:
        tail = sentences[1]
        joiner = rng.choice(("; ", ", and ", " – and ", ", while "))
        if joiner == "; " or re.match(r"(The|It|There|You|A|I) ", tail):
            if not tail.startswith("I "):
                tail = tail[0].lower() + tail[1:]
            return (
                sentences[0].rstrip(".")
                + joiner
                + tail
                + "".join(f" {one}" for one in sentences[2:])
            )
    if len(sentences) > 1 and rng.random() < 0.15 and not sentences[1].startswith("Done"):
        return " ".join([sentences[0], f"Also: {sentences[1]}", *sentences[2:]])
    return " ".join(sentences)


def two(rng: Random) -> Episode:
    """Two or three needs of different kinds; the same place may be meant."""
    corner = Corner(rng)
    if rng.random() < 0.35:
        pool = [
            f
            for f in FAMILIES.values()
            if not f.acts
            and any(p.kind == "city" for p in f.params.values())
            and len([p for p in f.params.values() if p.kind == "city"]) == 1
        ]
        families = rng.sample(pool, 2)
        first = corner.need(families[0], told=0.1)
        spot = next(n for n, p in families[0].params.items() if p.kind == "city")
        other = next(n for n, p in families[1].params.items() if p.kind == "city")
        held = rng.choice(
            ("there", "the same place", "the same town", "that city", "that same place")
        )
        drawn = draw(families[1], corner.style, rng)
        given = {other: first.fill.told[spot]}
        second = corner.need(
            families[1], "1", drawn=drawn, given=given, told=0.1, held={other: held}
        )
        second.fragment = second.fragment.replace("in there", "there").replace("for there", "there")
        needs = [first, second]
    elif rng.random() < 0.8:
        families = list(two_families(rng))
        needs = [corner.need(f, str(n), told=0.15) for n, f in enumerate(families)]
    else:
        families = rng.sample(list(FAMILIES.values()), 3)
        needs = [corner.need(f, str(n), told=0.05) for n, f in enumerate(families)]
    for need in needs:
        need.respond()
    parts = [carried(n.kind, n.fragment, n.fill.step, rng) for n in needs]
    task, found = corner.task(parts)
    sentences = [need.sentence() for need in needs]
    steps = [step_of(n, found, sentence=s) for n, s in zip(needs, sentences, strict=True)]
    functions = offer([n.drawn.offered for n in needs], families, corner.style, rng)
    return corner.episode(task, functions, steps, _join_sentences(sentences, rng))


def single(corner: Corner, family: Family, **more: Any) -> Episode:
    """Return an episode with one call."""
    need = corner.need(family, **more)
    need.respond()
    task, found = corner.task([carried(need.kind, need.fragment, "0", corner.rng)])
    sentence = need.sentence()
    step = step_of(need, found, sentence=sentence)
    functions = offer([need.drawn.offered], [family], corner.style, corner.rng)
    return corner.episode(task, functions, [step], sentence)


def families_with(*kinds: str) -> list[Family]:
    """Return the families that have a parameter of one of these kinds."""
    return [
        f for f in FAMILIES.values() if any(p.kind.split()[0] in kinds for p in f.params.values())
    ]


_DATED = families_with(
    "date", "pdate", "rs", "prs", "dt", "dts", "time", "weekday", "month", "year"
)

_NUMBERED = families_with(
    "int",
    "num",
    "pct",
    "money",
    "cur",
    "country",
    "lang",
    "qty",
    "dur_min",
    "dur_s",
    "mass_g",
    "len_cm",
)

_OPTIONAL = [f for f in FAMILIES.values() if f.says]

_TEXTS = [
    f
    for f in FAMILIES.values()
    if any(p.kind.startswith("@@") or p.kind in {"email", "url"} for p in f.params.values())
    or any("@file" in p.kind or p.kind.startswith("code") for p in f.params.values())
]


def dates(rng: Random) -> Episode:
    """Dates and times in the format of the schema."""
    return single(Corner(rng), rng.choice(_DATED), told=0.35)


def numbers(rng: Random) -> Episode:
    """Numbers, money, units, codes of countries and languages."""
    return single(Corner(rng), rng.choice(_NUMBERED), told=0.3)


def optional(rng: Random) -> Episode:
    """Optional arguments: set where the task has a value, left out otherwise."""
    return single(Corner(rng), rng.choice(_OPTIONAL), told=rng.choice((0.0, 0.5, 1.0)))


def texts(rng: Random) -> Episode:
    """Values copied as they stand."""
    return single(Corner(rng), rng.choice(_TEXTS), told=0.5)


_COMPARED = [f for f in FAMILIES.values() if f.compare]

_THRESHOLDS = [f for f in FAMILIES.values() if f.above]

_YES = (
    "Yes, {a} is {adj}: {va} against {vb} for {b}.",
    "Yes: {a} has {va}, {b} only {vb}.",
    "Yes, with {va} for {a} and {vb} for {b}.",
    "Yes – {va} for {a}, {vb} for {b}.",
    "It is: {a} comes to {va}, {b} to {vb}.",
    "Yes, {va} compared with {vb} for {b}.",
    "Indeed, {a} is {adj} than {b}, {va} against {vb}.",
)

_NO = (
    "No, {a} has {va} and {b} {vb}.",
    "No: {va} for {a}, but {vb} for {b}.",
    "No, it is the other way round: {vb} for {b} and {va} for {a}.",
    "No, {b} is {adj} with {vb}; {a} has {va}.",
    "It is not: {a} comes to {va}, {b} to {vb}.",
    "No – {a}: {va}, {b}: {vb}.",
)

_RELATIONS = (
    ("above", True),
    ("over", True),
    ("more than", True),
    ("below", False),
    ("under", False),
    ("less than", False),
)


def yes_no(rng: Random) -> Episode:
    """Questions that are answered with yes or no, and the values."""
    if rng.random() < 0.3:
        return _threshold(rng)
    corner = Corner(rng)
    family = rng.choice(_COMPARED)
    name_field, name, high, low, text = rng.choice(family.compare)
    first = corner.need(family, told=0.0, only=name_field)
    first.asked = name_field
    first.told.clear()
    needs = others_like(corner, first, name, 2)
    for need in needs:
        need.asked = name_field
        need.respond()
    more = rng.random() < 0.6
    adj = high if more else low
    a, b = (need.fill.told[name].text for need in needs)
    marked = first.slot(text.replace("{adj}", adj), held={"A": a, "B": b})
    marked = mark_value("#1", mark_value("#0", marked))
    task, found = corner.task([rng.choice(AROUND["q"]).replace("{x}", marked)])
    va, vb = (need.values[name_field] for need in needs)
    holds = va > vb if more else va < vb
    forms: tuple[str, ...] = _YES if holds else _NO
    if va == vb:
        forms = ("No, they are level: {va} for {a} and {vb} for {b}.",)
    form = rng.choice(forms)
    if "only" in form and not more:
        form = _YES[0]
    answer = (
        form.replace("{adj}", adj)
        .replace("{a}", entity(needs[0], name))
        .replace("{b}", entity(needs[1], name))
        .replace("{va}", needs[0].shown(name_field))
        .replace("{vb}", needs[1].shown(name_field))
    )
    steps = [step_of(need, found, sentence=need.sentence()) for need in needs]
    functions = offer([first.drawn.offered], [family], corner.style, rng)
    return corner.episode(task, functions, steps, answer)


def _threshold(rng: Random) -> Episode:
    corner = Corner(rng)
    family = rng.choice(_THRESHOLDS)
    name, text = rng.choice(family.above)
    need = corner.need(family, told=0.0, only=name)
    need.asked = name
    need.respond()
    value = need.values[name]
    relation, more = rng.choice(_RELATIONS)
    if " have " in text:
        relation, more = rng.choice((("more than", True), ("less than", False), ("over", True)))
    spread = max(3, int(abs(value) * 0.4))
    limit = int(value) + rng.randint(-spread, spread)
    if limit == value or (limit < 0 <= value):
        limit = int(value) + 3
    marked = need.slot(text.replace("{rel}", relation).replace("{n}", str(limit)))
    task, found = corner.task([carried("q", marked, "0", rng)])
    holds = value > limit if more else value < limit
    sentence = need.sentence()
    lead = (
        rng.choice(("Yes", "Yes", "Yes, it is"))
        if holds
        else rng.choice(("No", "No", "No, it is not"))
    )
    if " have " in text or text.startswith("does"):
        lead = lead.split(",")[0]
    tail = f"{relation} {limit}"
    forms = (
        f"{lead}. {sentence}",
        f"{lead}: {need.shown(name)}.",
        f"{lead}, {need.shown(name)} is {'' if holds else 'not '}{tail}."
        if "," not in lead
        else (f"{lead}: {need.shown(name)}."),
        f"{lead}. {sentence}",
    )
    answer = rng.choice(forms)
    step = step_of(need, found, sentence=answer)
    functions = offer([need.drawn.offered], [family], corner.style, rng)
    return corner.episode(task, functions, [step], answer)
