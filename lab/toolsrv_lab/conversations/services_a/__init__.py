"""Generator of episodes over hand-written services, half A: mail to e-signature.

The services are in ``data/services_a_*.txt``, word lists in ``data/services_a_pools.txt``, small
talk in ``data/services_a_talk.txt``. Seeded. ``python -m toolsrv_lab.conversations.services_a``
writes them.
"""

from __future__ import annotations

import argparse
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from toolsrv_lab.conversations.episode import Episode, Made, Offered, check, require, write
from toolsrv_lab.conversations.services_a.calls import Maker, Part
from toolsrv_lab.conversations.services_a.catalog import Operation, catalog, small_talk
from toolsrv_lab.conversations.services_a.naming import Style, distractors
from toolsrv_lab.conversations.services_a.task import (
    BEGIN,
    END,
    LEAD,
    MID,
    capitalised,
    compose,
    noise,
    sentence,
    unmarked,
)
from toolsrv_lab.conversations.services_a.values import SLOT, UnfitError

SOURCE = "services_a"


def _finish(
    maker: Maker,
    parts: list[Part],
    missing: list[Operation],
    rng: random.Random,
    operations: Mapping[str, Operation],
) -> Episode:
    """Put an episode together; ``missing`` are operations of the last parts which nobody offers."""
    talk = small_talk()
    order = list(range(len(parts)))
    task = compose([parts[index].text for index in order], rng)
    fate = rng.random()
    if fate < 0.22:
        task = rng.choice(talk["story"]) + " " + capitalised(task)
    elif fate < 0.42:
        before = rng.choice(talk["before"])
        task = before + (
            " " + capitalised(task) if before.endswith((".", "!", "?")) else " " + task
        )
    if rng.random() < (0.12 if fate < 0.22 else 0.2):
        task = sentence(task) + " " + rng.choice(talk["after"])
    task = noise(capitalised(task), rng)
    words = {}
    for found in re.finditer(f"{BEGIN}([^{MID}]*){MID}([^{END}]*){END}", task):
        words[int(found[1])] = LEAD.sub("", unmarked(found[2]).strip())
    plain = unmarked(task)
    styles: dict[str, Style] = {}
    for op in operations.values():
        styles.setdefault(op.service, Style(rng))
    gone = [one for one in parts if one.calls and one.calls[0].op in missing]
    made: list[Made] = []
    needed: list[Operation] = []
    used: dict[str, set[str]] = {}
    sentences: list[str] = []
    unserved: list[str] = []
    for part in parts:
        if part in gone:
            unserved.append(words[part.calls[0].segment])
            form = rng.choice(talk["unserved"])
            gerund = part.calls[0].op.gerund
            sentences.append(
                form.replace("{n}", gerund).replace("{N}", gerund[0].upper() + gerund[1:])
            )
            continue
        sentences += part.sentences
        for call in part.calls:
            style = styles[call.op.service]
            if call.op not in needed:
                needed.append(call.op)
            used.setdefault(call.op.name, set()).update(call.scope.arguments)
            told = words[call.segment]
            said = {}
            for path, text in call.scope.said.items():
                if path.startswith("_"):
                    continue
                said[style.path(path)] = text if text in plain else text[:1].upper() + text[1:]
            made.append(
                Made(
                    told,
                    style.function(call.op),
                    style.arguments(call),
                    said,
                    style.keys(call.response),
                    call.error,
                    call.sentence,
                )
            )
    size = rng.randint(max(3, min(9, len(needed) + 1)), 9)
    others = distractors(needed, missing, size - len(needed), rng, operations)
    offer: list[Offered] = []
    for op in [*needed, *others]:
        one = styles[op.service].offered(op, frozenset(used.get(op.name, ())))
        if one.name not in [other.name for other in offer]:
            offer.append(one)
    rng.shuffle(offer)
    if not made:
        gerund = missing[0].gerund
        reason = rng.choice(talk["reason"]).replace("{n}", gerund)
        return Episode(SOURCE, maker.now.isoformat(), plain, offer, (), "", reason, ())
    return Episode(
        SOURCE, maker.now.isoformat(), plain, offer, made, _answer(sentences, rng), "", unserved
    )


def _answer(sentences: Sequence[str], rng: random.Random) -> str:
    out = sentences[0]
    for one in sentences[1:]:
        first = one.split(" ", 1)[0]
        if (
            rng.random() < 0.25
            and first in ("The", "It", "There", "Your", "This", "Its", "A")
            and out.endswith(".")
            and not re.search("[;:]| and ", out)
        ):
            out = out[:-1] + rng.choice((", and ", "; ", " and ")) + one[:1].lower() + one[1:]
        else:
            out += " " + one
    return out


def _one_episode(rng: random.Random) -> Episode:
    operations, chains = catalog()
    maker = Maker(rng)
    names = sorted(operations)
    fate = rng.random()
    first = operations[rng.choice(names)]

    def near() -> Operation:
        if rng.random() < 0.55:
            same = [one for one in names if operations[one].domain == first.domain]
            return operations[rng.choice(same)]
        return operations[rng.choice(names)]

    if fate < 1 / 12:
        part = maker.plain(first)
        return _finish(maker, [part], [first], rng, operations)
    if fate < 1 / 12 + 1 / 15:
        chosen = [first]
        wanted = 2 + (rng.random() < 0.5)
        for _ in range(30):
            other = near()
            if other.noun not in {one.noun for one in chosen}:
                chosen.append(other)
            if len(chosen) >= wanted:
                break
        parts = [maker.plain(one) for one in chosen]
        lost = rng.choice(chosen) if len(chosen) > 1 else None
        if lost is not None:
            return _finish(maker, parts, [lost], rng, operations)
        return _finish(maker, parts, [], rng, operations)
    if fate < 0.42 and chains:
        chain = rng.choice(chains)
        parts = [maker.chain(chain, operations)]
        kinds = {(operations[one].noun, operations[one].verb) for one in chain.operations}
        if rng.random() < 0.3:
            first = operations[chain.operations[0]]
            other = near()
            if (other.noun, other.verb) not in kinds:
                parts.insert(rng.randrange(2), maker.plain(other))
        return _finish(maker, parts, [], rng, operations)
    wanted = rng.choices((1, 2, 3, 4), (42, 36, 16, 6))[0]
    chosen = [first]
    for _ in range(40):
        if len(chosen) >= wanted:
            break
        other = near()
        if all((other.noun, other.verb) != (one.noun, one.verb) for one in chosen):
            chosen.append(other)
    return _finish(maker, [maker.plain(one) for one in chosen], [], rng, operations)


def _check(episode: Episode) -> None:
    check(episode)
    require(len(episode.functions) >= 3, "less than three functions")
    told = episode.task + episode.answer
    require(not re.search("[\ue000-\uf8ff]", told), f"a mark is left: {told!r}")
    require(not SLOT.search(told), f"a slot is left: {told!r}")
    for step in episode.steps:
        require((step.response is None) == bool(step.error), f"response or error: {step.name}")


def episodes(seed: int, count: int) -> Iterator[Episode]:
    """Yield ``count`` checked episodes, all different tasks."""
    rng = random.Random(seed)
    seen: set[str] = set()
    while len(seen) < count:
        try:
            one = _one_episode(rng)
        except UnfitError:
            continue
        if one.task in seen:
            continue
        _check(one)
        seen.add(one.task)
        yield one


def main() -> None:
    """Write episodes to a file."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("output", type=Path)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--count", type=int, default=9000)
    given = options.parse_args()
    print(write(episodes(given.seed, given.count), given.output))


__all__ = ["episodes", "main"]
