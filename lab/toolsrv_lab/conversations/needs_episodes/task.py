"""The text of a task that is composed of needs."""

from __future__ import annotations

import random
import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache

from toolsrv_lab.conversations.needs_episodes.catalog import (
    Part,
)
from toolsrv_lab.conversations.needs_episodes.tables import (
    join_patterns,
    sections,
)
from toolsrv_lab.conversations.wording import word_set
from toolsrv_lab.instructions.written import MARK, written

_LOWERED = word_set(
    "a all an and any are as at before by can check could did do does fetch find for from "
    "get give has have help how if in is it list look may my now on our please provide "
    "pull put search send share should show so some tell than that the their then there "
    "these this those to what what's when where which who whose why will with would you "
    "your we name return retrieve see run make calculate convert"
)


@dataclass
class Draft:
    """A task that is being put together."""

    task: str
    spans: list[tuple[int, int]] = field(default_factory=list)
    """Start and end of each part in the task."""


def _lowered(clause: str) -> str:
    first = re.split(r"[^A-Za-z']", clause, maxsplit=1)[0]
    low = first.lower()
    usual = low in _LOWERED or (
        low in _small_words() and first not in {"I", "I'm", "I'd", "I've", "I'll"}
    )
    return clause[:1].lower() + clause[1:] if usual and first[1:] == low[1:] else clause


@cache
def _small_words() -> frozenset[str]:
    """Return words that the needs have in lower case far more often than with a capital inside a sentence."""
    small: dict[str, int] = defaultdict(int)
    large: dict[str, int] = defaultdict(int)
    for needs in written().values():
        for need in needs:
            for word in re.findall(r"(?<=\s)[A-Za-z]+(?=[\s,.?!])", MARK.sub(" ", need)):
                if word.islower():
                    small[word] += 1
                elif word[1:].islower():
                    large[word.lower()] += 1
    return frozenset(
        word
        for word, count in small.items()
        if count > 3 and count > 4 * large[word] and word != "i"
    )


def _is_question(text: str) -> bool:
    return (
        re.match(
            r"(?i)(?:what|which|who|whose|where|when|how|is|are|does|do|did|can|could|would|has|have|was|were|may)\b",
            text,
        )
        is not None
    )


def compose(parts: Sequence[Part], rng: random.Random) -> Draft:
    """Return the task that has these parts."""
    main = [part for part in parts if part.kind in {"need", "unserved"}]
    multi = len(parts) > 1
    pieces: list[tuple[str, int | None]] = []
    several = any(re.search(r"[.?!][\"')]? +\S", part.text) for part in main)
    patterns = [
        p for p in join_patterns()[len(main)] if not several or not re.search(r"\{[cC]\d\}", p)
    ]
    pattern = rng.choice(patterns)
    talk = sections("needs_talk.txt")
    target = 0
    if multi and rng.random() < 0.36:
        target = rng.randrange(36, 58)
    elif not multi and rng.random() < 0.2:
        target = rng.randrange(18, 40)
    words = sum(len(part.text.split()) for part in parts)
    before, after, between = "", "", ""
    if target:
        own = talk.get(main[0].api.category, ())
        opening = list(rng.sample(talk["before"], 2))
        if own and rng.random() < 0.5:
            opening[0] = rng.choice(own)
        before = opening[0]
        words += len(before.split())
        if words < target:
            after = rng.choice(talk["after"])
            words += len(after.split())
        if words < target and multi:
            between = rng.choice(talk["between"])
            words += len(between.split())
        if words < target:
            before += " " + opening[1]
    elif rng.random() < 0.08:
        after = rng.choice(talk["after"])
    if before:
        pieces.append((before + rng.choice((" ", " ", "\n")), None))
    at = 0
    for seen, match in enumerate(re.finditer(r"\{([cCS])(\d)\}", pattern)):
        fixed = pattern[at : match.start()]
        at = match.end()
        if seen and between and fixed.strip() in {"", "Also,"} and rng.random() < 0.9:
            fixed = f" {between} "
            between = ""
        part = main[int(match[2]) - 1]
        text, mark = _clause(part, match[1], pattern[at : at + 1], rng)
        if pattern[at : at + 1] in {".", "?"} and mark:
            at += 1
        pieces += [(fixed, None), (text, parts.index(part)), (mark, None)]
        follow = parts.index(part) + 1
        while follow < len(parts) and parts[follow].kind in {"same", "chain"}:
            tail = pattern[at : at + 1]
            if tail in {".", "?", ";", ","}:
                pieces.append(("." if tail in {";", ","} else tail, None))
                at += 1
            elif not mark:
                pieces.append((".", None))
            if parts[follow].kind == "chain":
                inner = parts[follow].text.rstrip(" .?!")
                if not any(inner.startswith(said) for _, said in parts[follow].values.values()):
                    inner = _lowered(inner)
                frame = rng.choice(sections("needs_frames.txt")["chain"]).strip()
                head, _, rest = frame.partition("{c}")
                pieces += [(" " + head, None), (inner, follow), (rest, None)]
            else:
                text = parts[follow].text
                end = re.search(r"[.?!]*$", text)
                mark = end[0] if end else ""
                pieces += [(" ", None), (text[: len(text) - len(mark)], follow), (mark, None)]
            if at < len(pattern) and not pattern[at].isspace() and parts[follow].kind != "need":
                pieces.append((" ", None))
            follow += 1
    pieces.append((pattern[at:], None))
    if after:
        pieces.append((" " + after, None))
    task, spans = "", [(0, 0)] * len(parts)
    for text, owner in pieces:
        if owner is not None:
            spans[owner] = (len(task), len(task) + len(text))
        task += text
    return _typed_slips(Draft(task, spans), parts, rng)


def _clause(part: Part, form: str, following: str, rng: random.Random) -> tuple[str, str]:
    """Return a need in the form of its place, and the mark that ends it there."""
    text = part.text
    if any(text.startswith(said) for _, said in part.values.values()):
        form = "as is" if form in "cC" else "S as is"
    if any(re.search(r"[.?!]$", said) and text.endswith(said) for _, said in part.values.values()):
        return text, ""
    end = re.search(r"[.?!]+$", text)
    mark = end[0] if end else ""
    inner = text[: len(text) - len(mark)].rstrip()
    if form == "S as is":
        return inner, mark or ("?" if _is_question(inner) else ".")
    if form == "S":
        inner = (
            inner[:1].upper() + inner[1:]
            if rng.random() < 0.9 and inner[:1].isalpha() and not re.match(r"\w*\d|\S*[@:/]", inner)
            else inner
        )
        return inner, mark or ("?" if _is_question(inner) else ".")
    if form != "as is":
        inner = _lowered(inner) if form == "c" else inner[:1].upper() + inner[1:]
    if following in {"", ".", "?"} and following != "":
        return inner, "?" if "?" in mark or _is_question(inner) else following
    return inner, ""


def _typed_slips(draft: Draft, parts: Sequence[Part], rng: random.Random) -> Draft:
    """Return the task as typed: now and then in lower case or with slips, values kept."""
    guarded = [False] * len(draft.task)
    for (begin, end), part in zip(draft.spans, parts, strict=True):
        for _, said in part.values.values():
            at = draft.task.find(said, begin, end)
            while at >= 0:
                for one in range(at, at + len(said)):
                    guarded[one] = True
                at = draft.task.find(said, at + 1, end)
    letters = list(draft.task)
    if rng.random() < 0.1:
        letters = [
            one if guarded[at] or len(one.lower()) != 1 else one.lower()
            for at, one in enumerate(letters)
        ]
    if rng.random() < 0.07:
        for _ in range(max(1, len(letters) // 70)):
            at = rng.randrange(max(1, len(letters) - 1))
            if (
                at + 1 < len(letters)
                and letters[at].isalpha()
                and letters[at + 1].isalpha()
                and not guarded[at]
                and not guarded[at + 1]
            ):
                letters[at : at + 2] = reversed(letters[at : at + 2])
    return Draft("".join(letters), draft.spans)
