"""A whole task: an opening or none, one to five needs joined as people join them, a closing.

A need is one of those written for its API where there are some (``errands``), else put together
from the document (``needs``). Seeded. Knows nothing about how APIs are sampled.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from typing import NamedTuple

from toolsrv_lab.instructions.errands import spoken, written
from toolsrv_lab.instructions.needs import Style, need, openings, slots
from toolsrv_lab.instructions.values import place
from toolsrv_registry.api import Api

_JOINTS = (
    "Additionally, ", "Also, ", "Furthermore, ", "Moreover, ", "In addition, ", "Besides that, ",
    "And ", "Then ", "Next, ", "Plus, ", "After that, ", "I also need something else: ", "", "", "",
    "On top of that, ", "As well, ", "Once you have that, ", "It would also help if ",
)  # fmt: skip
_LAST = (
    "Finally, ",
    "Lastly, ",
    "And finally, ",
    "One more thing: ",
    "Oh, and ",
    "Last but not least, ",
)
_INLINE = (", and ", " and also ", ", and then ", "; ", " and ", ", plus ", ", as well as ", ". ")
_CLOSINGS = (
    "Thanks!", "Thank you for your help!", "Thank you so much!", "Any help is appreciated.",
    "I want everything to be perfect.", "That would be great.", "It's quite urgent.",
    "Please be as detailed as possible.", "This will help us make a decision.", "Cheers",
    "It will help me with the preparations.", "Thank you for your assistance!",
)  # fmt: skip
_SLOT = re.compile(r"\{(\w+)\}")
# Where needs were written for an API, so many of its needs are one of them.
_WRITTEN = 0.75
# First words that lose their capital inside a sentence.
_LOWERED = frozenset({
    "a", "all", "am", "an", "and", "any", "are", "as", "at", "before", "by", "can", "check",
    "could", "did", "do", "does", "fetch", "find", "for", "from", "get", "give", "has", "have",
    "help", "how", "if", "in", "is", "it", "list", "look", "may", "my", "now", "on", "our",
    "please", "provide", "pull", "put", "search", "send", "share", "should", "show", "so", "some",
    "tell", "than", "that", "the", "their", "then", "there", "these", "this", "those", "to", "what",
    "what's", "when", "where", "which", "who", "whose", "why", "will", "with", "would", "you",
    "your", "we",
})  # fmt: skip


class Instruction(NamedTuple):
    """A task and the sentence or clause of it that tells each of its needs, in their order."""

    text: str
    needs: tuple[str, ...]


def compose(apis: Sequence[Api], rng: random.Random) -> Instruction:
    """Return a task that needs every one of the APIs, in their order."""
    style = Style(
        synonyms=rng.choice((0.0, 0.15, 0.35, 0.55)),
        thinning=rng.choice((0.0, 0.1, 0.25)),
        tool=rng.choice((0.0, 0.15, 0.35, 0.7)),
        quoted=rng.choice((0.0, 0.0, 0.08)),
        values=rng.choice((0.2, 0.5, 0.8)),
    )
    return tell([_need(api, rng, style) for api in apis], apis[0].category, rng)


def tell(needs: Sequence[str], category: str, rng: random.Random) -> Instruction:
    """Return a task that tells these needs in their order, set in a story of the category."""
    if rng.random() < 0.12:
        needs = [_inner(one).lower() for one in needs]
        text = rng.choice((", ", " and ", "; ", " + ", " ")).join(needs)
        return Instruction(_finished(text, rng), tuple(needs))
    if len(needs) > 1 and rng.random() < 0.25:
        needs = [_inner(one) for one in needs]
        body = _sentence(rng.choice(_INLINE).join(needs), rng)
    else:
        needs = _joined(needs, rng)
        body = " ".join(needs)
    before = [opening(category, rng)] if rng.random() < 0.7 else []
    if before and rng.random() < 0.2:
        before.append(opening("any", rng))
    if before and before[-1].endswith(".") and rng.random() < 0.15:
        # The reason and the first need in one breath.
        joint = rng.choice((" and ", ", so ", "; ", " and now ", " - "))
        needs[0] = f"{before[-1][:-1]}{joint}{_lowered(needs[0])}"
        body = f"{before.pop()[:-1]}{joint}{_lowered(body)}"
    after = [rng.choice(_CLOSINGS)] if rng.random() < 0.18 else []
    return Instruction(_finished(" ".join([*before, body, *after]), rng), tuple(needs))


def _need(api: Api, rng: random.Random, style: Style) -> str:
    own = written().get(api.id)
    if own and rng.random() < _WRITTEN:
        return spoken(rng.choice(own))
    return need(api, rng, style)


def _inner(clause: str) -> str:
    """Return a sentence as it stands inside another."""
    return _lowered(clause).rstrip(".!?")


def _lowered(clause: str) -> str:
    first = clause.partition(" ")[0]
    return clause[:1].lower() + clause[1:] if first.lower() in _LOWERED else clause


def opening(category: str, rng: random.Random) -> str:
    """Return an opening that suits a category, with its places filled."""
    table = openings()
    known = table.get(category, ())
    text = rng.choice(known if known and rng.random() < 0.5 else table["any"])

    def fill(match: re.Match[str]) -> str:
        if match[1] == "place":
            return place(rng)
        return rng.choice(slots()[match[1]])

    return _SLOT.sub(fill, text)


def _joined(needs: Sequence[str], rng: random.Random) -> list[str]:
    out = []
    for at, clause in enumerate(needs):
        joint = ""
        if at:
            last = at == len(needs) - 1 and rng.random() < 0.35
            joint = rng.choice(_LAST if last else _JOINTS)
        out.append(_sentence(joint + _lowered(clause) if joint else clause, rng))
    return out


_QUESTION = re.compile(
    r"^(?:\w+[\w ]*, |and |then |oh, and )?(?:can|could|what|which|where|how|is|are|do|would|any)\b",
    re.IGNORECASE,
)


def _sentence(clause: str, rng: random.Random) -> str:
    clause = clause[:1].upper() + clause[1:]
    if clause[-1:] in ".?!":
        return clause
    if _QUESTION.match(clause):
        return clause + ("?" if rng.random() < 0.95 else "")
    return clause + ("!" if rng.random() < 0.03 else ".")


def _finished(text: str, rng: random.Random) -> str:
    """Return the text as typed: mostly clean, now and then lower case or with slips."""
    text = " ".join(text.split())
    if rng.random() < 0.05:
        text = text.lower()
    if rng.random() < 0.05:
        letters = list(text)
        for _ in range(max(1, len(letters) // 60)):
            at = rng.randrange(len(letters) - 1) if len(letters) > 1 else 0
            if letters[at].isalpha():
                letters[at : at + 2] = reversed(letters[at : at + 2])
        text = " ".join("".join(letters).split())
    return text
