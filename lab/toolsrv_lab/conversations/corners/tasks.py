"""The text of a task, the functions on offer, and the episode out of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import date, timedelta
from random import Random
from typing import Any

from toolsrv_lab.conversations.corners.catalog import AROUND, FAMILIES, Family
from toolsrv_lab.conversations.corners.naming import Style, draw, draw_style, near, serves
from toolsrv_lab.conversations.corners.needs import Need, make_need
from toolsrv_lab.conversations.corners.values import (
    MID,
    OPEN,
    SHUT,
    mark_value,
    read_marks,
    unmarked,
)
from toolsrv_lab.conversations.episode import Episode, Made, Offered

_SOURCE = "corners"


def _outside(text: str, change: Callable[[str], str]) -> str:
    """Apply ``change`` outside of values; marks of fragments do not count."""
    out: list[str] = []
    depth = 0
    stack: list[bool] = []
    buffer = ""
    place = 0

    def flush() -> None:
        nonlocal buffer
        out.append(change(buffer) if depth == 0 else buffer)
        buffer = ""

    while place < len(text):
        char = text[place]
        if char == OPEN:
            flush()
            end = text.index(MID, place)
            ident = text[place + 1 : end]
            value = "#" not in ident
            stack.append(value)
            depth += value
            out.append(text[place : end + 1])
            place = end + 1
            continue
        if char == SHUT:
            flush()
            depth -= stack.pop()
            out.append(char)
            place += 1
            continue
        buffer += char
        place += 1
    flush()
    return "".join(out)


def _slip(word: str, rng: Random) -> str:
    place = rng.randrange(1, len(word) - 2)
    kind = rng.randrange(3)
    if kind == 0:
        return word[:place] + word[place + 1] + word[place] + word[place + 2 :]
    if kind == 1:
        return word[:place] + word[place + 1 :]
    return word[:place] + word[place] + word[place:]


def typos(text: str, rng: Random, share: float) -> str:
    """Return a text with typing slips outside of marks. ``share``: of words that get one."""

    def change(part: str) -> str:
        words = re.split(r"(\s+)", part)
        for n, word in enumerate(words):
            if len(word) > 4 and word.isalpha() and rng.random() < share:
                words[n] = _slip(word, rng)
        return "".join(words)

    return _outside(text, change)


def _capitals(text: str) -> str:
    """Capitalise the starts of sentences, where no value stands there."""
    out, depth, start = [], 0, True
    stack: list[bool] = []
    place = 0
    while place < len(text):
        char = text[place]
        if char == OPEN:
            end = text.index(MID, place)
            value = "#" not in text[place:end]
            stack.append(value)
            depth += value
            out.append(text[place : end + 1])
            place = end + 1
            continue
        if char == SHUT:
            depth -= stack.pop()
            out.append(char)
        elif depth == 0:
            if start and char.isalpha():
                char = char.upper()
            if not char.isspace() and char not in "\"'":
                start = False
            if char in ".?!" and text[place + 1 : place + 2] in {" ", "\n", ""}:
                start = True
            out.append(char)
        else:
            start = False
            out.append(char)
        place += 1
    return "".join(out)


def carried(need_kind: str, fragment: str, ident: str, rng: Random) -> str:
    """Return a sentence with the fragment, marked as the words of a step."""
    marked = mark_value(f"#{ident}", fragment)
    carrier = rng.choice(AROUND[need_kind])
    text = carrier.replace("{x}", marked)
    if unmarked(fragment).endswith("?"):
        text = text.replace(SHUT + "?", SHUT)
    return text


def _ended(text: str) -> str:
    bare = unmarked(text).rstrip()
    return text if bare.endswith((".", "?", "!", "…")) else text + "."


def _follows(text: str) -> str:
    """Begin a clause in small letters, as after a conjunction."""
    if text[0] == OPEN or text.startswith(("I ", "I'", "My ")):
        return text
    return text[0].lower() + text[1:]


def join_sentences(parts: Sequence[str], rng: Random, *, lower: bool, plain: bool = False) -> str:
    """Return the marked task of marked sentences."""
    text = parts[0]
    for part in parts[1:]:
        if rng.random() < 0.35:
            text = f"{_ended(text)} {part}"
            continue
        text = (
            rng.choice(AROUND["join"]).replace("{a}", _ended(text)).replace("{b}", _follows(part))
        )
    if not plain:
        long = rng.random()
        if long > 0.93:
            story = rng.sample(AROUND["before"], rng.choice((4, 4, 5)))
            text = f"{' '.join(story)} {text}"
        elif long < 0.22:
            text = f"{rng.choice(AROUND['before'])} {text}"
        elif long < 0.42:
            story = rng.sample(AROUND["before"], rng.choice((2, 2, 3)))
            text = f"{' '.join(story)} {text}"
        if rng.random() < (0.5 if long < 0.42 else 0.12):
            text = f"{_ended(text)} {' '.join(map(_ended, rng.sample(AROUND['after'], rng.choice((1, 1, 2)))))}"
    if lower:
        text = _outside(text, str.lower)
        if rng.random() < 0.5:
            dropped = "[',]" if rng.random() < 0.2 else "[']"
            text = _outside(text, lambda part: re.sub(dropped, "", part))
    elif rng.random() < 0.75:
        text = _capitals(text)
    if rng.random() < 0.15:
        text = typos(text, rng, rng.choice((0.06, 0.12, 0.2)))
    if rng.random() < 0.06:
        text = text.replace(". ", ".\n", 1)
    return text.strip()


def offer(
    used: Sequence[Offered],
    families: Sequence[Family],
    style: Style,
    rng: Random,
    *,
    size: int = 0,
    without: Sequence[Family] = (),
) -> tuple[Offered, ...]:
    """Return the used functions among others of near name and like domain, shuffled."""
    size = size or rng.choice((3, 4, 5, 5, 6, 6, 7, 8, 9))
    size = max(size, len(used) + 1)
    barred = [*families, *without]
    found = list(used)
    names = {one.name.lower().replace("_", "").replace("-", "") for one in found}
    abouts: set[str] = set()

    def add(one: Offered) -> None:
        plain = one.name.lower().replace("_", "").replace("-", "")
        if plain not in names and one.description not in abouts and len(found) < size:
            names.add(plain)
            abouts.add(one.description)
            found.append(one)

    nears = [one for family in barred for one in family.near]
    rng.shuffle(nears)
    for one in nears[: rng.randint(1, 4)]:
        if not any(serves(one, other) for other in barred):
            add(near(one, style, rng))
    groups = {family.group for family in families}
    like = [f for f in FAMILIES.values() if f.group in groups and f not in barred]
    rng.shuffle(like)
    for family in like[: rng.randint(1, 4)]:
        add(draw(family, style, rng).offered)
    while len(found) < size:
        family = rng.choice(list(FAMILIES.values()))
        if family in barred:
            continue
        if family.near and rng.random() < 0.4:
            one = rng.choice(family.near)
            if not any(serves(one, other) for other in barred):
                add(near(one, style, rng))
        else:
            add(draw(family, style, rng).offered)
    rng.shuffle(found)
    return tuple(found)


def step_of(need: Need, found: Mapping[str, str], *, words: str = "", **more: Any) -> Made:
    """Return the call of a need, with the words of the finished task."""
    step = need.fill.step
    said = {}
    for name, key in need.drawn.keys.items():
        told = found.get(f"{step}.{name}")
        if told is None and name in need.silent and name in need.fill.told:
            marks = re.findall(f"{OPEN}([^{MID}]*){MID}", need.fill.told[name].text)
            told = next((found[m] for m in marks if m in found), None)
        if told and name in need.fill.told:
            said[key] = told
    return Made(
        words=words or found[f"#{step}"],
        name=need.drawn.offered.name,
        arguments=more.pop("arguments", need.arguments()),
        said=more.pop("said", said),
        response=more.pop("response", need.response),
        sentence=more.pop("sentence", ""),
        **more,
    )


class Corner:
    """What every corner starts from: a day, a style, a way of writing."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.now = date(2024, 1, 1) + timedelta(days=rng.randrange(365 * 6))
        self.style = draw_style(rng)
        self.lower = rng.random() < 0.2

    def need(self, family: Family, step: str = "0", **more: Any) -> Need:
        """Return a use of the family."""
        return make_need(family, self.rng, self.now, step, self.style, lower=self.lower, **more)

    def task(self, parts: Sequence[str], *, plain: bool = False) -> tuple[str, dict[str, str]]:
        """Return the finished task, and argument -> its words there."""
        return read_marks(join_sentences(parts, self.rng, lower=self.lower, plain=plain))

    def episode(
        self,
        task: str,
        functions: Sequence[Offered],
        steps: Sequence[Made],
        answer: str,
        **more: Any,
    ) -> Episode:
        """Return the episode."""
        return Episode(_SOURCE, self.now.isoformat(), task, functions, tuple(steps), answer, **more)
