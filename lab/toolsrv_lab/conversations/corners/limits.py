"""Episodes in which a call is not needed, or no function serves a part."""

from __future__ import annotations

from random import Random

from toolsrv_lab.conversations.corners.catalog import FAMILIES
from toolsrv_lab.conversations.corners.needs import sentence_case, wrap_outs
from toolsrv_lab.conversations.corners.several import two_families
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
