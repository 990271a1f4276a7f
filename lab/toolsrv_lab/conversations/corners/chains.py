"""Episodes in which a call takes a value from the response of an earlier one."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

from toolsrv_lab.conversations.corners.catalog import (
    AROUND,
    CHAINS,
    FAMILIES,
    VALUES,
    Chain,
    Follow,
)
from toolsrv_lab.conversations.corners.naming import function_name, key_name, parameter_schema
from toolsrv_lab.conversations.corners.needs import as_text, generated, sentence_case, wrap_outs
from toolsrv_lab.conversations.corners.tasks import Corner, carried, offer, step_of
from toolsrv_lab.conversations.corners.values import FORMS, Fill, Told, code, mark_value, unmarked
from toolsrv_lab.conversations.episode import Episode, Made, Offered


def _chain_query(chain: Chain, corner: Corner, step: str) -> tuple[Offered, str, Fill, str]:
    rng = corner.rng
    form = rng.choice(FORMS.get(chain.kind, ("",)))
    key = key_name(rng.choice(chain.keys), corner.style)
    schema = parameter_schema(chain.kind, form, chain.about, rng)
    properties = {key: schema}
    if chain.listed and rng.random() < 0.4:
        properties[rng.choice(("limit", "max", "page_size"))] = {
            "type": "integer",
            "description": rng.choice(("How many at most.", "Longest list.", "Number of results.")),
        }
    fill = Fill(rng, corner.now, step, lower=corner.lower)
    fill.value("q", chain.kind, form, FAMILIES["temp"])
    offered = Offered(
        function_name(rng.choice(chain.names), corner.style, rng),
        rng.choice(chain.abouts),
        {"type": "object", "properties": properties, "required": [key]},
    )
    return offered, key, fill, form


def _follow(one: Follow, corner: Corner) -> tuple[Offered, str]:
    rng = corner.rng
    key = key_name(rng.choice(one.keys), corner.style)
    properties: dict[str, Any] = {
        key: {"type": "string", "description": one.about.capitalize() + "."}
    }
    if rng.random() < 0.2:
        properties["lang"] = {"type": "string", "description": "Language of the reply."}
    return (
        Offered(
            function_name(rng.choice(one.names), corner.style, rng),
            rng.choice(one.abouts),
            {"type": "object", "properties": properties, "required": [key]},
        ),
        key,
    )


def _chain_offer(
    corner: Corner, used: Sequence[Offered], chain: Chain, taken: Sequence[Follow]
) -> tuple[Offered, ...]:
    rng = corner.rng
    size = max(len(used) + 1, rng.randint(4, 9))
    found = list(used)
    names = {one.name for one in found}
    others = [one for one in chain.follows if one not in taken]
    rng.shuffle(others)
    pool = [_follow(one, corner)[0] for one in others]
    for other in rng.sample([c for c in CHAINS if c is not chain], 3):
        pool.append(_chain_query(other, corner, "x")[0])
        pool.append(_follow(rng.choice(other.follows), corner)[0])
    for one in pool:
        if one.name not in names and len(found) < size:
            names.add(one.name)
            found.append(one)
    rng.shuffle(found)
    return tuple(found)


def chains(rng: Random) -> Episode:
    """Two or three calls, each with an argument from the response before it."""
    kind = rng.random()
    if kind < 0.25:
        return linked(rng)
    return _chained(rng, three=kind > 0.72)


def _chained(rng: Random, *, three: bool) -> Episode:
    corner = Corner(rng)
    chain = rng.choice(CHAINS)
    finder, key, fill, _ = _chain_query(chain, corner, "0")
    told = fill.told["q"]
    noun = chain.noun.replace("{q}", told.text)
    plain_noun = chain.noun.replace("{q}", told.plain)
    reads = [f for f in chain.follows if not f.acts]
    acts = [f for f in chain.follows if f.acts]
    taken = rng.sample(reads, 2 if three and not acts else 1)
    if three and acts:
        taken = [rng.choice(reads), acts[0]]
    elif acts and rng.random() < 0.35:
        taken = [acts[0]]
    id_key = key_name(rng.choice(chain.id_keys), corner.style)
    if chain.listed:
        items: list[dict[str, Any]] = []
        count = rng.randint(2, 5)
        used: set[str] = set()
        name_key = rng.choice(("name", "title", "label", "name"))
        while len(items) < count:
            name = generated(chain.items, rng, corner.now, {})
            ident = code(chain.code, rng)
            if name in used or ident in used:
                continue
            used |= {name, ident}
            item = {id_key: ident, name_key: name}
            for attribute, gen, _, _ in chain.attributes:
                item[key_name(attribute, corner.style)] = generated(gen, rng, corner.now, {})
            items.append(item)
        attribute, _, low, high = rng.choice(chain.attributes)
        akey = key_name(attribute, corner.style)
        ends = [(min, low)] if low else []
        ends += [(max, high)] if high else []
        if rng.random() < 0.22 or len({one[akey] for one in items}) < len(items):
            chosen = items[0]
            word = rng.choice(("first", "first", "first-listed", "topmost"))
        else:
            pick, words = rng.choice(ends)
            chosen = pick(items, key=lambda one: one[akey])
            word = rng.choice(words)
        thing = f"the {word} {noun}"
        plain_thing = f"the {word} {plain_noun}"
        listing: Any = items
        shape = rng.randrange(5)
        if shape == 1:
            listing = {"results": items, "total": len(items)}
        elif shape == 2:
            listing = {"data": {"items": items}}
        elif shape == 3:
            listing = {
                "query": told.argument,
                "hits": [{"rank": n, **one} for n, one in enumerate(items, 1)],
            }
        elif shape == 4:
            listing = {"items": items, "next_page": None, "note": rng.choice(VALUES["junk"])}
        name = chosen[name_key]
    else:
        ident = code(chain.code, rng)
        chosen = {id_key: ident}
        body = {id_key: ident, "status": rng.choice(("active", "ok", "found"))}
        extra = {
            "updated": generated("hdate", rng, corner.now, {}),
            "score": round(rng.random(), 2),
        }
        listing = rng.choice(
            (
                {**body, **extra},
                {"match": body},
                [{**body, **extra}],
                {"data": {"record": body}},
                body,
            )
        )
        name, thing, plain_thing, word = "", noun, plain_noun, ""
    first_words = mark_value("#0", thing)
    separate = chain.listed and rng.random() < 0.4
    steps_ = []
    parts = []
    sentences = []
    found_sentence = f"{sentence_case(plain_thing)} is {name}." if chain.listed else ""
    for number, follow in enumerate(taken, 1):
        offered, fkey = _follow(follow, corner)
        value = name if follow.by_name and chain.listed else chosen[id_key]
        out = generated(follow.gen, rng, corner.now, {})
        out_key = key_name(rng.choice(follow.out_keys), corner.style)
        extra_fields = (
            {"checked": generated("hdate", rng, corner.now, {})} if rng.random() < 0.4 else {}
        )
        unit = "" if follow.acts else follow.tail
        body = {out_key: out}
        if unit and rng.random() < 0.5:
            body = {out_key: f"{as_text(out)} {unit}"}
        elif unit:
            body = {out_key: out, "unit": unit}
        response = wrap_outs(rng, {**body, **extra_fields}, {fkey: value})
        shown = f"{as_text(out)} {unit}".strip()
        it = (
            "it"
            if chain.listed or chain.key in {"car", "shipment", "room", "place", "meter"}
            else "them"
        )
        if follow.acts:
            do, done = follow.label, follow.tail
            raw = do.replace("the {x}", "{x}")
            named = number == 1 and not separate
            target = (
                first_words if named else rng.choice((it, "that one", it)) if chain.listed else it
            )
            inner = mark_value(f"#{number}", raw.replace("{x}", target))
            carrier_kind = "do"
            says = done.replace("{name}", name).replace("{out}", shown)
            sentence = sentence_case(says) + "."
            bare = plain_thing if number == 1 and not separate else "it"
            alone = sentence_case(done.replace("{name}", bare).replace("{out}", shown)) + "."
        else:
            possess = rng.random()
            if number == 1 and not separate:
                inner = mark_value(f"#{number}", f"the {follow.label} of {first_words}")
            elif possess < 0.5 and it == "it":
                inner = mark_value(f"#{number}", f"its {follow.label}")
            else:
                inner = mark_value(f"#{number}", f"the {follow.label}")
            carrier_kind = "np"
            who = name or plain_thing
            forms = [
                f"The {follow.label} of {who} is {shown}.",
                f"{sentence_case(plain_thing)} has this {follow.label}: {shown}.",
                f"It is {shown}.",
                f"For {who}, the {follow.label} is {shown}.",
                f"The {follow.label} is {shown}.",
            ]
            if chain.listed:
                forms += [
                    f"{sentence_case(plain_thing)} is {name}; the {follow.label} is {shown}.",
                    f"The {follow.label} of {name}, {plain_thing}, is {shown}.",
                ]
            sentence = rng.choice(forms)
            alone = rng.choice((f"The {follow.label} is {shown}.", f"It is {shown}."))
            if number == 1 and not separate:
                alone = f"The {follow.label} of {plain_thing} is {shown}."
        sentences.append(sentence)
        if number == 1 and separate:
            opener = rng.choice(
                (
                    *("Find {t}", "Which is {t}?", "look for {t}", "what's {t}"),
                    *("I'm looking for {t}.", "Search for {t}", "pick {t}", "Take {t}"),
                )
            ).replace("{t}", first_words)
            parts.append(opener)
            sentences.insert(0, found_sentence)
        if number == 1 and separate and rng.random() < 0.5:
            verb = "" if carrier_kind == "do" else rng.choice(("tell me ", "give me ", "show me "))
            glue = (
                rng.choice((" and ", " and then ", ", then "))
                if not opener.endswith(("?", "."))
                else " "
            )
            parts[-1] += glue + verb + inner if glue != " " else f" {verb}{inner}"
        else:
            parts.append(rng.choice(AROUND[carrier_kind]).replace("{x}", inner))
        steps_.append((offered, fkey, value, response, alone, number))
    task, found = corner.task(parts)
    steps = [
        Made(
            found["#0"],
            finder.name,
            {key: told.argument},
            {key: found["0.q"]},
            listing,
            sentence=found_sentence if separate else "",
        )
    ]
    for offered, fkey, value, response, sentence, number in steps_:
        steps.append(
            Made(found[f"#{number}"], offered.name, {fkey: value}, {}, response, sentence=sentence)
        )
    functions = _chain_offer(corner, [finder, *[s[0] for s in steps_]], chain, taken)
    return corner.episode(task, functions, steps, " ".join(sentences))


_LINKS: Sequence[tuple[str, str, Sequence[str], str, str]] = (
    ("fsize", "owner", ("the owner of {path}", "whoever owns {path}"), "balance", "employee"),
    ("fsize", "owner", ("the owner of {path}", "the person {path} belongs to"), "slots", "person"),
    ("tstatus", "owner", ("the owner of {key}", "whoever is working on {key}"), "slots", "person"),
    ("tstatus", "owner", ("the assignee of {key}", "whoever has {key}"), "balance", "employee"),
    ("tstatus", "owner", ("the owner of {key}", "whoever is on {key}"), "transfer", "to"),
    ("book", "author", ("the author of the book with ISBN {isbn}",), "balance", "employee"),
    (
        "fixtures",
        "opponent",
        ("the next opponent of {team}", "whoever {team} play next"),
        "fixtures",
        "team",
    ),
    (
        "fixtures",
        "opponent",
        ("the next opponent of {team}", "the side {team} meet next"),
        "result",
        "team",
    ),
    ("film", "director", ("the director of {title}", "whoever made {title}"), "slots", "person"),
    ("fxday", "rate", (), "", ""),
)


def linked(rng: Random) -> Episode:
    """A name in one response is the argument of a second call."""
    corner = Corner(rng)
    key, out, things, other, slot = rng.choice(_LINKS[:-1])
    first = corner.need(FAMILIES[key], told=0.0, only=out)
    first.asked = out
    first.respond()
    phrase = first.slot(rng.choice(things))
    plain = unmarked(phrase)
    marked = mark_value("#0", phrase)
    value = first.values[out]
    drawn = first.drawn if key == other else None
    second = corner.need(FAMILIES[other], "1", told=0.15, held={slot: marked}, drawn=drawn)
    second.fill.told[slot] = Told(value, value, value, value, value)
    second.silent.add(slot)
    second.respond()
    task, found = corner.task([carried(second.kind, second.fragment, "1", rng)])
    sentence = second.sentence()
    if rng.random() < 0.6 and value in sentence:
        sentence = sentence.replace(value, f"{value} ({plain})", 1)
    elif value not in sentence:
        sentence = f"{sentence_case(plain)} is {value}. {sentence}"
    steps = [step_of(first, found), step_of(second, found, sentence=sentence)]
    used = [first.drawn.offered] + ([] if drawn else [second.drawn.offered])
    families = [FAMILIES[key], FAMILIES[other]]
    return corner.episode(task, offer(used, families, corner.style, rng), steps, sentence)
