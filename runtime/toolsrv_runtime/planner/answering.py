"""The answer of the compact format: which facts of the responses it tells. Grammar and reading.

Asks nothing; a fact is a name and a value, a group the facts of one response.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from toolsrv_runtime.planner import layout
from toolsrv_runtime.templates import grammar_rules
from toolsrv_runtime.values import facts


def chosen(said: str, groups: Sequence[Sequence[facts.Fact]]) -> list[list[str]]:
    """Return the names of the facts that an answer of ``grammar`` mentions, per group."""
    found = []
    position = 0
    for group in groups:
        names = []
        for name, value in group:
            item = facts.sentence([(name, value)])
            if said.startswith(item, position):
                names.append(name)
                position += len(item)
                position += 2 * said.startswith((", ", "; "), position)
        found.append(names)
    return found


def news(
    groups: Sequence[Sequence[facts.Fact]], told: Sequence[Collection[str]]
) -> list[list[str]]:
    """Return the names of the facts that every answer mentions, per group.

    ``told`` are the values of each group, in lower case, that need not be told again.
    """
    return [
        [name for (name, _), must in zip(group, _musts(group, known), strict=True) if must]
        for group, known in zip(groups, told, strict=True)
    ]


def grammar(groups: Sequence[Sequence[facts.Fact]], told: Sequence[Collection[str]]) -> str:
    """Return the grammar of an answer: of each response everything that is news, in order.

    A fact that repeats what the task or an argument already said is the model's choice.
    """
    rules = []
    for index, (group, known) in enumerate(zip(groups, told, strict=True)):
        texts = [grammar_rules.lark_literal(facts.sentence([fact])) for fact in group]
        pairs = list(zip(texts, _musts(group, known), strict=True))
        rules.append(f"g{index}: {_sequence(pairs)}")
    body = f" {grammar_rules.lark_literal('; ')} ".join(f"g{index}" for index in range(len(groups)))
    closing = grammar_rules.lark_literal('"}')
    return (
        f"start: {grammar_rules.lark_literal(layout.ANSWER)} {body} {closing}\n"
        + "\n".join(rules)
        + "\n"
    )


def _musts(group: Sequence[facts.Fact], told: Collection[str]) -> list[bool]:
    """Return which facts are news; all of them where none is."""
    musts = [value.lower() not in told for _, value in group]
    return musts if any(musts) else [True] * len(musts)


def _sequence(pairs: Sequence[tuple[str, bool]]) -> str:
    """Return items in order with commas between, where some may be left out."""
    comma = grammar_rules.lark_literal(", ")
    first = next(index for index, (_, must) in enumerate(pairs) if must)
    head = "".join(f"({text} {comma})? " for text, _ in pairs[:first])
    tail = "".join(
        f" {comma} {text}" if must else f" ({comma} {text})?" for text, must in pairs[first + 1 :]
    )
    return f"{head}{pairs[first][0]}{tail}"
