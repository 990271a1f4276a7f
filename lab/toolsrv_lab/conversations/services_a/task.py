"""The text of a task: clauses joined, with small talk, slips and missing stops."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence

from toolsrv_lab.conversations.services_a.catalog import small_talk

OPEN, SEP, CLOSE = "\ue000", "\ue001", "\ue002"  # a value that the task tells

BEGIN, MID, END = "\ue003", "\ue004", "\ue005"  # the words that a step serves

_MARKED = re.compile(f"{OPEN}([^{SEP}]*){SEP}([^{CLOSE}]*){CLOSE}")

_MARKS = re.compile(f"{OPEN}[^{SEP}]*{SEP}|{CLOSE}|{BEGIN}[^{MID}]*{MID}|{END}")

LEAD = re.compile(r"^[\s,;.:?!]*(?:(?:and|then|also|And|Then)\b[\s,]*){0,2}")

_QUESTION = re.compile(
    r"^(what|who|how|when|where|is|are|do|does|did|which|has|have|was|were|any|can|could|whose|will|am|anything)\b",
    re.IGNORECASE,
)


def unmarked(text: str) -> str:
    """Return a text without marks."""
    return _MARKS.sub("", text)


def capitalised(text: str) -> str:
    """Capitalise the first letter outside of values, unless a copied value stands first."""
    index = 0
    while index < len(text):
        if text[index] == BEGIN:
            index = text.index(MID, index) + 1
        elif text[index] == OPEN:
            keys = text[index + 1 : text.index(SEP, index)]
            index = text.index(SEP, index) + 1
            if not keys.endswith("!"):
                return text
        else:
            return text[:index] + text[index].upper() + text[index + 1 :]
    return text


def _ended(text: str) -> bool:
    return unmarked(text).rstrip("\"')").endswith((".", "?", "!"))


def sentence(text: str) -> str:
    """Return a clause as a sentence with its final mark."""
    if _ended(text):
        return capitalised(text)
    return capitalised(text) + ("?" if _QUESTION.match(unmarked(text)) else ".")


def compose(parts: Sequence[str], rng: random.Random) -> str:
    """Join the clauses of a task."""
    out = parts[0]
    if len(parts) == 1:
        return sentence(out) if rng.random() < 0.85 else capitalised(out)
    simple = all(not _ended(one) and not _QUESTION.match(unmarked(one)) for one in parts)
    if simple and len(parts) > 2 and rng.random() < 0.35:
        first = (
            rng.choice(
                ("", "", "Three things: ", "Please do this for me: ", "To do: ", "For today: ")
            )
            if len(parts) == 3
            else ""
        )
        return sentence(
            first + ", ".join(parts[:-1]) + rng.choice((" and ", ", and ", ", then ")) + parts[-1]
        )
    if rng.random() < 0.06:
        marks = rng.choice(
            (("1) ", "2) ", "3) ", "4) "), ("- ", "- ", "- ", "- "), ("a. ", "b. ", "c. ", "d. "))
        )
        glue = rng.choice(("\n", " ")) if marks[0] != "- " else "\n"
        return glue.join(mark + one for mark, one in zip(marks, parts, strict=False))
    talk = small_talk()
    for one in parts[1:]:
        question = bool(_QUESTION.match(unmarked(one)))
        if (
            not _ended(out)
            and not question
            and not _ended(one)
            and not _QUESTION.match(unmarked(out))
            and rng.random() < 0.6
        ):
            out += rng.choice(talk["and"]).replace("_", " ") + one
        elif not _ended(one) and rng.random() < 0.7:
            link = rng.choice(talk["also_q" if question else "also"]).replace("_", " ")
            out = sentence(out) + " " + (sentence(link + one) if link else sentence(one))
        else:
            out = sentence(out) + " " + sentence(one)
    return sentence(out)


def noise(text: str, rng: random.Random) -> str:
    """Lower case, typing slips and missing stops outside of values."""
    way = rng.random()
    pieces = re.split(f"({OPEN}[^{CLOSE}]*{CLOSE}|{BEGIN}[^{MID}]*{MID}|{END})", text)
    if way < 0.14:
        pieces = [one if one.startswith((OPEN, BEGIN, END)) else one.lower() for one in pieces]
        if rng.random() < 0.5:
            pieces = [
                one if one.startswith((OPEN, BEGIN, END)) else one.replace("'", "")
                for one in pieces
            ]
        out = "".join(pieces)
        return out[:-1] if out.endswith(".") and rng.random() < 0.7 else out
    if way < 0.26:
        places = [
            (index, found.start(), found.end())
            for index, one in enumerate(pieces)
            if not one.startswith((OPEN, BEGIN, END))
            for found in re.finditer(r"\b[a-z]{5,}\b", one)
        ]
        for index, start, end in sorted(
            rng.sample(places, min(len(places), rng.choice((1, 1, 2)))), reverse=True
        ):
            word = pieces[index][start:end]
            at = rng.randrange(1, len(word) - 2)
            slip = rng.randrange(3)
            if slip == 0:
                word = word[:at] + word[at + 1] + word[at] + word[at + 2 :]
            elif slip == 1:
                word = word[:at] + word[at + 1 :]
            else:
                word = word[:at] + word[at] + word[at:]
            pieces[index] = pieces[index][:start] + word + pieces[index][end:]
    return "".join(pieces)
