"""Episodes with long responses, with instructions in a response, without a function."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import date
from random import Random
from typing import Any

from toolsrv_lab.conversations.corners.catalog import FAMILIES, VALUES
from toolsrv_lab.conversations.corners.naming import near, serves
from toolsrv_lab.conversations.corners.needs import generated
from toolsrv_lab.conversations.corners.several import others_like, vary
from toolsrv_lab.conversations.corners.tasks import Corner, carried, offer, step_of
from toolsrv_lab.conversations.episode import Episode

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
