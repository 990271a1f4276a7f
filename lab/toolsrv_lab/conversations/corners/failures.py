"""Episodes with failing calls."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

from toolsrv_lab.conversations.corners.calls import single, two_families
from toolsrv_lab.conversations.corners.catalog import CODES, FAMILIES
from toolsrv_lab.conversations.corners.naming import Style, draw, draw_forms
from toolsrv_lab.conversations.corners.needs import sentence_case
from toolsrv_lab.conversations.corners.tasks import Corner, carried, offer, step_of
from toolsrv_lab.conversations.corners.values import mark_value
from toolsrv_lab.conversations.episode import Episode

_DOWN = (
    "503 Service Unavailable",
    "timeout after 30 s",
    "upstream connection refused",
    "500 Internal Server Error",
    "quota exceeded, try again tomorrow",
    "service is down for maintenance",
    "502 Bad Gateway",
    "rate limit reached",
    "database is locked",
    "temporarily unavailable",
    "could not reach the provider",
    "certificate expired",
    "401 API key is not valid",
    "403 forbidden for this account",
)

_FAILED = (
    'I could not find that out: the service answered "{e}".',
    'That did not work, the function failed with "{e}".',
    'The call failed ("{e}"), so I have no answer to this.',
    'Sorry, I got only an error: "{e}".',
    'There is no result, because the service said "{e}".',
    'No luck: the function reported "{e}".',
    'I tried, but the service replied "{e}".',
    'It failed with "{e}"; please try again later.',
)

_FAILED_ACT = (
    'That was not done: the service answered "{e}".',
    'I could not do it, the function failed with "{e}".',
    'Nothing was changed, because the call failed with "{e}".',
    'It did not go through ("{e}").',
    'Sorry, this failed: "{e}".',
    'The service refused with "{e}", so it is not done.',
)


def failed(rng: Random) -> Episode:
    """A failing call: repeated with a correction, replaced by another function, or reported."""
    kind = rng.random()
    if kind < 0.38:
        return _mended(rng)
    if kind < 0.68:
        return _backup(rng)
    return _hopeless(rng)


_SECOND = ("backup", "mirror", "alt", "fallback", "second", "other", "spare", "lite", "plus", "eu")


def _backup(rng: Random) -> Episode:
    corner = Corner(rng)
    family = rng.choice(list(FAMILIES.values()))
    need = corner.need(family, told=0.1)
    other_style = Style(corner.style.case, rng.choice(_SECOND))
    twin = draw(family, other_style, rng, forms=need.drawn.forms)
    about = rng.choice(("{} (second source)", "{} Another provider.", "Fallback: {}", "{}"))
    twin.offered = replace(twin.offered, description=about.format(twin.offered.description))
    again = replace(need, drawn=twin)
    again.respond()
    task, found = corner.task([carried(need.kind, need.fragment, "0", rng)])
    error = rng.choice(_DOWN)
    sentence = again.sentence()
    steps = [
        step_of(need, found, error=error, response=None),
        step_of(again, found, sentence=sentence),
    ]
    functions = offer([need.drawn.offered, twin.offered], [family], corner.style, rng)
    names = [one.name for one in functions]
    if names.index(need.drawn.offered.name) > names.index(twin.offered.name):
        swap = list(functions)
        a, b = names.index(need.drawn.offered.name), names.index(twin.offered.name)
        swap[a], swap[b] = swap[b], swap[a]
        functions = tuple(swap)
    return corner.episode(task, functions, steps, sentence)


def _hopeless(rng: Random) -> Episode:
    corner = Corner(rng)
    double = rng.random() < 0.45
    families = list(two_families(rng)) if double else [rng.choice(list(FAMILIES.values()))]
    needs = [corner.need(f, str(n), told=0.1) for n, f in enumerate(families)]
    bad = rng.randrange(len(needs))
    error = rng.choice(_DOWN)
    task, found = corner.task([carried(n.kind, n.fragment, n.fill.step, rng) for n in needs])
    steps, sentences = [], []
    for number, need in enumerate(needs):
        if number == bad:
            forms = _FAILED_ACT if need.family.acts else _FAILED
            sentence = rng.choice(forms).replace("{e}", error)
            if double:
                lacks = need.family.lacks.removeprefix("the ")
                sentence = rng.choice(
                    (
                        f'For {lacks} the service answered only "{error}".',
                        f'As for {lacks}, the call failed with "{error}".',
                        f'I got an error for {lacks}: "{error}".',
                        f'The part about {lacks} failed: "{error}".',
                        f'{sentence_case(lacks)} did not work: the service said "{error}".',
                    )
                )
            steps.append(step_of(need, found, error=error, response=None))
        else:
            need.respond()
            sentence = need.sentence()
            steps.append(step_of(need, found, sentence=sentence))
        sentences.append(sentence)
    functions = offer([n.drawn.offered for n in needs], families, corner.style, rng)
    return corner.episode(task, functions, steps, " ".join(sentences))


def _mended(rng: Random) -> Episode:
    corner = Corner(rng)
    kinds = {"country", "date", "city", "lang", "@port", "@station", "@film", "@person"}
    pool = [
        f
        for f in FAMILIES.values()
        if any(p.kind.split()[0] in kinds and p.needed for p in f.params.values())
    ]
    family = rng.choice(pool)
    names = [n for n, p in family.params.items() if p.kind.split()[0] in kinds and p.needed]
    name = rng.choice(names)
    kind = family.params[name].kind.split()[0]
    forms = draw_forms(family, rng)
    if kind in {"country", "lang"}:
        forms[name] = rng.choice(("a2", "a3"))
    if kind == "date":
        forms[name] = "iso"
    drawn = draw(family, corner.style, rng, forms=forms)
    properties = drawn.offered.parameters["properties"]
    key = drawn.keys[name]
    about = family.params[name].about.capitalize() + "."
    if kind in {"country", "lang", "date"}:
        properties[key] = {"type": "string", "description": about}
    need = corner.need(family, told=0.1, drawn=drawn)
    told = need.fill.told[name]
    good = told.argument
    bad: Any
    if kind == "date":
        bad = told.plain_bare
        if bad == good:
            return _mended(rng)
        error = rng.choice(
            (
                "{k}: '{v}' is not a valid date, use YYYY-MM-DD",
                "invalid {k}: expected format YYYY-MM-DD",
                "cannot parse {k} '{v}' (want ISO 8601 date)",
                "400 Bad Request: {k} must match YYYY-MM-DD",
            )
        )
    elif kind in {"country", "lang"}:
        table = CODES[kind]
        row = next(r for r in table if good in r[1:3])
        bad = row[0]
        size = "alpha-2" if good == row[1] else "alpha-3"
        if kind == "lang":
            size = "ISO 639-1" if good == row[1] else "ISO 639-3"
        error = rng.choice(
            (
                "unknown {k} '{v}', an " + size + " code is needed",
                "{k} must be an " + size + " code",
                "'{v}' is no " + size + " code",
                "invalid {k}: use " + size + f" codes such as {good}",
            )
        )
    else:
        if len(str(good)) < 6 or not str(good).replace(" ", "").isalpha():
            return single(corner, family, drawn=drawn)
        place = rng.randrange(2, len(good) - 2)
        bad = (
            good[:place] + good[place + 1 :]
            if rng.random() < 0.5
            else (good[:place] + good[place + 1] + good[place] + good[place + 2 :])
        )
        if bad == good:
            return _mended(rng)
        need.fill.told[name].text = need.fill.told[name].bare = mark_value(f"0.{name}", bad)
        need.ask()
        need.fill.told[name].plain = need.fill.told[name].plain_bare = good
        error = rng.choice(
            (
                "no {k} named '{v}'. Did you mean '{g}'?",
                "'{v}' not found, closest match: {g}",
                "unknown {k} '{v}' (similar: {g})",
                "404: {v}. Suggestions: {g}",
            )
        )
    error = error.replace("{k}", key).replace("{v}", str(bad)).replace("{g}", str(good))
    need.respond()
    task, found = corner.task([carried(need.kind, need.fragment, "0", rng)])
    sentence = need.sentence()
    second = step_of(need, found, sentence=sentence)
    first_arguments = {**need.arguments(), key: bad}
    said = dict(second.said)
    if "Did you mean" in error or kind not in {"date", "country", "lang"}:
        second = replace(second, said={k: v for k, v in said.items() if k != key})
    first = step_of(need, found, arguments=first_arguments, said=said, error=error, response=None)
    functions = offer([need.drawn.offered], [family], corner.style, rng)
    return corner.episode(task, functions, [first, second], sentence)
