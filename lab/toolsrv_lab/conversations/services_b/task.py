"""The text of a task: needs joined, with openings, small talk and slips."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence

from toolsrv_lab.conversations.services_b.calls import Need, misspelt
from toolsrv_lab.conversations.services_b.catalog import Service
from toolsrv_lab.conversations.services_b.phrases import (
    ALSO,
    ASKS,
    CLOSERS,
    JOINS,
    OPENERS,
    SMALLTALK,
    THING,
    VERBS,
    WANTS,
)


def compose(needs: Sequence[Need], service: Service, rng: random.Random, *, lower: bool) -> str:
    """Return the text of the task and set each need's words."""
    for need in needs:
        need.pieces = [one for one in need.pieces if one[0]]
    if rng.random() < 0.13:
        for need in rng.sample(needs, 1):
            at = rng.choice(
                [n for n, one in enumerate(need.pieces) if one[1] and len(one[0]) > 5] or [-1]
            )
            if at >= 0:
                words = need.pieces[at][0].split(" ")
                spot = rng.choice(
                    [n for n, one in enumerate(words) if len(one) > 4 and one.isalpha()] or [-1]
                )
                if spot >= 0:
                    words[spot] = misspelt(rng, words[spot])
                    need.pieces[at] = (" ".join(words), True)
    texts = ["".join(one[0] for one in need.pieces).strip() for need in needs]
    literal = [need.pieces[0][1] for need in needs]
    closed = [text[-1] in "?.!" for text in texts]
    out = ""
    opener = rng.choice(OPENERS) if rng.random() < 0.3 else ""
    context = (
        rng.choice(service.contexts if service.contexts and rng.random() < 0.75 else SMALLTALK)
        if rng.random() < 0.4
        else ""
    )
    if context and rng.random() < 0.4:
        context = f"{rng.choice(SMALLTALK)} {context}"
    clause = len(texts) > 1 and rng.random() < 0.6
    parts: list[tuple[str, str]] = []
    for at, text in enumerate(texts):
        verb = re.match(r"[a-z']+(?= )", text)
        wrap, tail = "", ""
        if literal[at] and verb and verb[0] in VERBS and not closed[at] and rng.random() < 0.45:
            wrap, tail = rng.choice(ASKS if not (at and clause) else ASKS[:4])
        elif literal[at] and not closed[at] and THING.match(text) and rng.random() < 0.75:
            wrap, tail = rng.choice(WANTS)
        parts.append((wrap, tail))
    for at, whole in enumerate(texts):
        text = whole
        wrap, tail = parts[at]
        joined = ""
        if at:
            ended = out.rstrip()[-1] in "?.!"
            if clause and not ended:
                joined = rng.choice(JOINS)
            else:
                if not ended:
                    out = out.rstrip() + ("." if not lower or rng.random() < 0.6 else ",")
                joined = " " + (rng.choice(ALSO) if rng.random() < 0.55 else "")
        if clause and at < len(texts) - 1 and text.endswith("?"):
            text = text[:-1]
        start = not at or out.rstrip()[-1:] in ("?", ".", "!")
        if not at:
            if opener.endswith(",") and re.match(r"(?!I\b|I')[A-Z][a-z' ]", context):
                context = context[0].lower() + context[1:]
            joined = " ".join(one for one in (opener, context) if one)
            if joined:
                start = joined[-1] in ".!?"
                joined += " "
        elif joined.strip():
            start = False
        lead = joined + wrap
        if start and not wrap and literal[at] and not lower and text[0].islower():
            text = text[0].upper() + text[1:]
        if start and wrap and not lower:
            lead = joined + wrap[0].upper() + wrap[1:]
        if joined.strip() and at and not clause and not lower:
            lead = joined[0] + (joined[1].upper() + joined[2:]) + wrap
        if lower and literal[at]:
            text = text[0].lower() + text[1:] if text[1:2].islower() else text
        needs[at].text = text
        out += lead + text + tail
    question = any(closed) and texts[-1].endswith("?")
    if out[-1] not in "?.!" and not question and rng.random() < (0.75 if not lower else 0.25):
        out += (
            rng.choice([".", ".", ".", "!", ". "]).strip() if not out.rstrip().endswith("@") else ""
        )
    if parts[-1][0].startswith(("could", "can", "would", "any chance")) and out.endswith(
        (".", "!")
    ):
        out = out[:-1] + "?"
    if rng.random() < 0.15:
        closer = rng.choice(CLOSERS)
        out += f" {closer}" if out[-1] in "?.!" else f", {closer[0].lower()}{closer[1:]}"
    return out.strip()
