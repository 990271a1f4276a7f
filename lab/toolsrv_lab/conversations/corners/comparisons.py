"""Episodes whose answer compares responses."""

from __future__ import annotations

from random import Random

from toolsrv_lab.conversations.corners.catalog import AROUND, FAMILIES
from toolsrv_lab.conversations.corners.several import entity, others_like
from toolsrv_lab.conversations.corners.tasks import Corner, carried, offer, step_of
from toolsrv_lab.conversations.corners.values import mark_value
from toolsrv_lab.conversations.episode import Episode

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
