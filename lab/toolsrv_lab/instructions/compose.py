"""A whole task: an opening or none, one to five needs joined as people join them, a closing.

Seeded. Knows nothing about how APIs are sampled.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence

from toolsrv_lab.instructions.needs import Style, need
from toolsrv_lab.instructions.values import place
from toolsrv_lab.instructions.words_data import openings, slots
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


def compose(apis: Sequence[Api], rng: random.Random) -> str:
    """Return a task that needs every one of the APIs, in their order."""
    style = Style(
        synonyms=rng.choice((0.0, 0.15, 0.35, 0.55)),
        thinning=rng.choice((0.0, 0.1, 0.25)),
        tool=rng.choice((0.0, 0.15, 0.35, 0.7)),
        quoted=rng.choice((0.0, 0.0, 0.08)),
        values=rng.choice((0.2, 0.5, 0.8)),
    )
    needs = [need(api, rng, style) for api in apis]
    if rng.random() < 0.12:
        text = rng.choice((", ", " and ", "; ", " + ", " ")).join(needs)
        return _finished(text.lower(), rng)
    if len(needs) > 1 and rng.random() < 0.25:
        body = _sentence(rng.choice(_INLINE).join(needs), rng)
    else:
        body = " ".join(_joined(needs, rng))
    before = [opening(apis[0].category, rng)] if rng.random() < 0.7 else []
    if before and rng.random() < 0.2:
        before.append(opening("any", rng))
    after = [rng.choice(_CLOSINGS)] if rng.random() < 0.18 else []
    return _finished(" ".join([*before, body, *after]), rng)


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
        out.append(_sentence(joint + clause, rng))
    return out


_QUESTION = re.compile(
    r"^(?:\w+[\w ]*, |and |then |oh, and )?(?:can|could|what|which|where|how|is|are|do|would|any)\b",
    re.IGNORECASE,
)


def _sentence(clause: str, rng: random.Random) -> str:
    clause = clause[:1].upper() + clause[1:]
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
        text = "".join(letters)
    return text
