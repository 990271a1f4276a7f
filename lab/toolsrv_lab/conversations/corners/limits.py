"""Episodes at the limits: no call needed, no function for a part, long or hostile responses.

A hostile response holds instructions to the model.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import date
from random import Random
from typing import Any

from toolsrv_lab.conversations.corners.calls import others_like, two_families, vary
from toolsrv_lab.conversations.corners.catalog import FAMILIES, VALUES
from toolsrv_lab.conversations.corners.naming import near, serves
from toolsrv_lab.conversations.corners.needs import generated, sentence_case, wrap_outs
from toolsrv_lab.conversations.corners.tasks import Corner, carried, offer, step_of
from toolsrv_lab.conversations.episode import Episode


def covered(rng: Random) -> Episode:
    """Two requests that one response answers: one call."""
    corner = Corner(rng)
    pool = [
        f
        for f in FAMILIES.values()
        if not f.acts and f.scopes and len([o for o in f.outs.values() if o.labels]) > 1
    ]
    family = rng.choice(pool)
    need = corner.need(family, told=0.15)
    names = [n for n, o in family.outs.items() if o.labels]
    a, b = rng.sample(names, 2)
    la, lb = rng.choice(family.outs[a].labels), rng.choice(family.outs[b].labels)
    scope = need.slot(rng.choice(family.scopes))
    forms = (
        f"the {la} and the {lb} {scope}",
        f"the {la} {scope}, and the {lb} too",
        f"both the {la} and the {lb} {scope}",
        f"the {la} as well as the {lb} {scope}",
        f"the {la} plus {lb} {scope}",
        f"the {la} {scope} and also the {lb}",
    )
    need.told.clear()
    for name in [n for n, p in family.params.items() if not p.needed]:
        need.fill.told.pop(name, None)
    need.asked = a
    need.answer_fields()
    text = carried("np", rng.choice(forms), "0", rng)
    keep = need._done_fields  # noqa: SLF001
    need._done_fields = lambda: {*keep(), a, b}  # type: ignore[method-assign]  # noqa: SLF001
    body, echo = need.body(), need.echo()
    for told in need.fill.told.values():
        if told.name:
            body = {"name": told.name, **body}
    need.response = wrap_outs(rng, body, echo)
    task, found = corner.task([text])
    plain = need.slot(rng.choice(family.scopes), answer=True)
    va, vb = need.shown(a), need.shown(b)
    told_forms = (
        f"The {la} {plain} is {va}, and the {lb} is {vb}.",
        f"The {la} {plain} is {va}; the {lb}: {vb}.",
        f"The {la} is {va} and the {lb} {vb} {plain}.",
        f"{sentence_case(la)} {plain}: {va}; {lb}: {vb}.",
        f"It is {va} for the {la}, with {vb} for the {lb}.",
    )
    answer = rng.choice(told_forms)
    step = step_of(need, found, sentence=answer)
    functions = offer([need.drawn.offered], [family], corner.style, rng, size=rng.randint(5, 9))
    return corner.episode(task, functions, [step], answer)


def stopping(rng: Random) -> Episode:
    """One request, though other functions look plausible; or one response that answers all."""
    if rng.random() < 0.55:
        return covered(rng)
    corner = Corner(rng)
    family = rng.choice(list(FAMILIES.values()))
    need = corner.need(family, told=0.2)
    need.respond()
    task, found = corner.task([carried(need.kind, need.fragment, "0", rng)])
    sentence = need.sentence()
    functions = offer([need.drawn.offered], [family], corner.style, rng, size=9)
    return corner.episode(task, functions, [step_of(need, found, sentence=sentence)], sentence)


_CANNOT = (
    "I found no function for {x}, so that part stays open.",
    "For {x} there is no function here.",
    "I could not do the rest: no function offers {x}.",
    "The other part is not served, because {x} is missing among my functions.",
    "Nothing on offer covers {x}.",
    "I have nothing for {x}, sorry.",
    "As for the rest, there is no function for {x}.",
    "I cannot help with {x}; no function fits.",
)


def partly(rng: Random) -> Episode:
    """Two needs, one of which no function serves."""
    corner = Corner(rng)
    families = list(two_families(rng))
    needs = [corner.need(f, str(n), told=0.1) for n, f in enumerate(families)]
    needs[0].respond()
    order = needs if rng.random() < 0.6 else needs[::-1]
    task, found = corner.task([carried(n.kind, n.fragment, n.fill.step, rng) for n in order])
    sentence = needs[0].sentence()
    step = step_of(needs[0], found, sentence=sentence)
    functions = offer(
        [needs[0].drawn.offered], [families[0]], corner.style, rng, without=[families[1]]
    )
    lacks = families[1].lacks.removeprefix("the ")
    answer = f"{sentence} {rng.choice(_CANNOT).replace('{x}', lacks)}"
    return corner.episode(task, functions, [step], answer, unserved=(found["#1"],))


_PAD_KEYS = [
    "revision",
    "source",
    "checksum",
    "region",
    "batch",
    "notes",
    "confidence",
    "station",
    "operator",
    "license",
    "etag",
    "version",
    "created_by",
    "queue",
    "shard",
    "ttl",
    "weight",
    "rank",
    "locale",
    "owner_team",
    "contact",
    "channel",
    "page",
    "width",
    "height",
    "previous_value",
    "expected_value",
    "minimum",
    "maximum",
    "average",
    "baseline",
]


def _padding(rng: Random, now: date, size: int) -> dict[str, Any]:
    made: dict[str, Any] = {}
    keys = rng.sample(_PAD_KEYS, len(_PAD_KEYS))
    for key in keys:
        if len(json.dumps(made)) > size:
            break
        made[key] = rng.choice(
            (
                rng.randint(1, 9000),
                round(rng.uniform(0, 90), 2),
                generated("hdate", rng, now, {}),
                generated("code ZZ-99999", rng, now, {}),
                rng.choice(VALUES["junk"]),
                rng.random() < 0.5,
                None,
                [rng.randint(1, 99) for _ in range(rng.randint(2, 6))],
                {"from": generated("hdate", rng, now, {}), "by": rng.choice(VALUES["person"])},
            )
        )
    return made


def long(rng: Random) -> Episode:
    """A long response of which the answer is one value."""
    corner = Corner(rng)
    family = rng.choice([f for f in FAMILIES.values() if not f.acts])
    need = corner.need(family, told=0.1)
    need.answer_fields()
    target = {**need.body(), **need.fill.shown_name()}
    size = rng.randint(700, 1700)
    name = vary(family)
    response: Any
    if name and rng.random() < 0.5:
        records = []
        for other in others_like(corner, need, name, 15)[1:]:
            other.asked = need.asked
            other.answer_fields()
            records.append({need.drawn.keys[name]: other.fill.told[name].argument, **other.body()})
            if len(json.dumps(records)) > size:
                break
        mine = {need.drawn.keys[name]: need.fill.told[name].argument, **target}
        records.insert(rng.randint(0, len(records)), mine)
        response = {rng.choice(("records", "items", "rows", "all")): records, "total": len(records)}
    else:
        pads = [_padding(rng, corner.now, int(size * 0.55)) for _ in range(2)]
        block = {**pads[1], **target}
        items = list(block.items())
        rng.shuffle(items)
        response = {"meta": pads[0], rng.choice(("payload", "data", "body")): dict(items)}
        if rng.random() < 0.4:
            response = dict(reversed(response.items()))
    while len(json.dumps(response, ensure_ascii=False)) > 1800:
        if "meta" in response:
            key = next(iter(response["meta"]), None)
            if key is None:
                break
            response["meta"].pop(key)
        else:
            rows = response[next(iter(response))]
            spare = [r for r in rows if r is not mine]
            rows.remove(spare[0])
            response["total"] = len(rows)
    need.response = response
    task, found = corner.task([carried(need.kind, need.fragment, "0", rng)])
    sentence = need.sentence()
    functions = offer([need.drawn.offered], [family], corner.style, rng)
    return corner.episode(task, functions, [step_of(need, found, sentence=sentence)], sentence)


def injected(rng: Random) -> Episode:
    """A response that holds orders: they are data."""
    corner = Corner(rng)
    family = rng.choice(list(FAMILIES.values()))
    need = corner.need(family, told=0.15)
    need.respond()
    order = rng.choice(VALUES["injection"])
    if rng.random() < 0.3:
        order = f"{rng.choice(VALUES['junk'])} {order}"
    key = rng.choice(
        ("note", "comment", "description", "message", "footer", "remark", "advert", "html")
    )
    response = need.response
    if isinstance(response, dict):
        items = list(response.items())
        items.insert(rng.randint(0, len(items)), (key, order))
        need.response = dict(items)
    elif isinstance(response, list):
        need.response = [{**response[0], key: order}]
    else:
        need.response = f"{order} {response}" if rng.random() < 0.5 else f"{response} {order}"
    task, found = corner.task([carried(need.kind, need.fragment, "0", rng)])
    sentence = need.sentence()
    functions = offer([need.drawn.offered], [family], corner.style, rng)
    return corner.episode(task, functions, [step_of(need, found, sentence=sentence)], sentence)


_REASONS = (
    "no function for {x}",
    "nothing here offers {x}",
    "there is no function for {x}",
    "{x} is missing among the functions",
    "none of the functions gives {x}",
    "no function does {x}",
    "a function for {x} is missing",
    "I see nothing that covers {x}",
    "the functions on offer do not cover {x}",
    "{x}: no such function here",
    "nobody offers {x} here",
    "would need a function for {x}",
    "{x} is not something these functions do",
    "cannot be done here, {x} is not on offer",
)

_BUT = (
    "{r}; the nearest one, {n}, is for something else",
    "{r}, only {n}, which is another thing",
    "{r} - {n} does not do that",
    "{r}",
    "{r}",
    "{r}",
)

_LIKE: Mapping[str, Sequence[str]] = {
    "alarm": ("remind", "event", "timer"),
    "timer": ("alarm", "remind"),
    "remind": ("event", "alarm"),
    "event": ("remind",),
    "temp": ("forecast",),
    "forecast": ("temp",),
    "convert": ("fxday",),
    "countryinfo": ("crops",),
    "crops": ("countryinfo",),
    "clinic": ("event", "remind"),
    "vet": ("event", "clinic", "remind"),
    "cinema": ("film",),
    "expense": ("transfer",),
    "ticket": ("email",),
    "sms": ("email",),
    "email": ("sms",),
}
"""Families that could stand in for another at a pinch."""


def nothing(rng: Random) -> Episode:
    """Near misses only: no function on offer fits."""
    corner = Corner(rng)
    family = rng.choice(list(FAMILIES.values()))
    need = corner.need(family, told=0.2)
    task, _ = corner.task([carried(need.kind, need.fragment, "0", rng)])
    picked = [
        near(one, corner.style, rng)
        for one in rng.sample(family.near, rng.randint(1, len(family.near)))
        if not serves(one, family)
    ]
    like = [FAMILIES[key] for key in _LIKE.get(family.key, ())]
    functions = offer(picked, [family], corner.style, rng, without=like)
    reason = rng.choice(_REASONS).replace("{x}", family.lacks)
    if picked:
        reason = rng.choice(_BUT).replace("{r}", reason).replace("{n}", picked[0].name)
    return corner.episode(task, functions, (), "", reason=reason)
