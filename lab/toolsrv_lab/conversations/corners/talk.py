"""Replies without a call: greetings, questions about the assistant, today's date."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, timedelta
from random import Random
from typing import Any

from toolsrv_lab.conversations.corners.catalog import (
    CHAINS,
    CODES,
    FAMILIES,
    VALUES,
    split_list,
)
from toolsrv_lab.conversations.corners.naming import draw_style, function_name
from toolsrv_lab.conversations.corners.tasks import typos
from toolsrv_lab.conversations.wording import DATA, MONTHS, WEEKDAYS

_TALK_SHARES: Mapping[str, int] = {
    "hello": 280,
    "howareyou": 150,
    "thanks": 260,
    "bye": 200,
    "who": 240,
    "can": 370,
    "chatgpt": 190,
    "how": 150,
    "trust": 50,
    "unsure": 35,
    "tongue": 35,
    "nofit": 25,
    "person": 50,
    "good": 40,
    "bad": 35,
    "rude": 30,
    "okay": 50,
    "day": 120,
    "date": 120,
    "year": 65,
    "month": 45,
    "weekend": 85,
    "tomorrow": 80,
    "yesterday": 35,
    "small": 60,
    "world": 300,
}

_BEFORE_TALK = (
    "hey, ",
    "hi, ",
    "hello, ",
    "ok, ",
    "so ",
    "erm, ",
    "sorry, ",
    "excuse me, ",
    "well, ",
)

_AFTER_TALK = (
    " please",
    " pls",
    " mate",
    " then",
    ", thanks",
    " :)",
    " 🙂",
    ", my friend",
    " by the way",
)

_DATED_TALK = {"day", "date", "year", "month", "weekend", "tomorrow", "yesterday"}

_PLAIN_TALK = {"hello", "thanks", "bye", "small", "okay", "good", "bad", "rude"}

_TAILS = (
    "What may I do for you?",
    "Just ask.",
    "Tell me what you need.",
    "Is there anything to look up?",
    "Anything else?",
)


def _talk_book() -> dict[str, tuple[tuple[str, ...], tuple[str, ...]]]:
    found: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {}
    blocks = re.split(
        r"^\[(\w+)\]$", (DATA / "corners_talk.txt").read_text("utf-8"), flags=re.MULTILINE
    )
    for kind, block in zip(blocks[1::2], blocks[2::2], strict=True):
        said, replies = block.strip().split("\n-\n")
        found[kind] = (split_list(said.replace("\n", " "), " / "), split_list(replies, "\n"))
    return found


def _api_names(rng: Random) -> list[str]:
    names: list[str] = []
    style = draw_style(rng)
    titled = rng.random() < 0.6
    while len(names) < 5:
        if rng.random() < 0.75:
            text = rng.choice(rng.choice(list(FAMILIES.values())).names)
        else:
            text = rng.choice(rng.choice(CHAINS).names)
        name = text.title() if titled and rng.random() < 0.5 else text.capitalize()
        if not titled:
            name = function_name(text, style, rng)
        if name.lower() not in {one.lower() for one in names}:
            names.append(name)
    return names


def _talk_slots(rng: Random, now: date, names: Sequence[str]) -> dict[str, str]:
    def long_form(day: date) -> str:
        return f"{day.day} {MONTHS[day.month - 1]} {day.year}"

    one, two = rng.sample([row[0] for row in CODES["country"]], 2)
    city, other = rng.sample(VALUES["city"], 2)
    a, b, c = rng.sample(list(names), 3)
    ahead, back = now + timedelta(days=1), now - timedelta(days=1)
    yes = now.weekday() >= 5
    return {
        "a": a,
        "b": b,
        "c": c,
        "weekday": WEEKDAYS[now.weekday()],
        "date": long_form(now),
        "iso": now.isoformat(),
        "year": str(now.year),
        "month": MONTHS[now.month - 1],
        "weekendyes": "Yes" if yes else "No",
        "weekendlow": "yes" if yes else "no",
        "tomorrow": long_form(ahead),
        "tomorrow_day": WEEKDAYS[ahead.weekday()],
        "yesterday": long_form(back),
        "yesterday_day": WEEKDAYS[back.weekday()],
        "country": one,
        "country2": two,
        "city": city,
        "city2": other,
        "book": rng.choice(VALUES["booktitle"]),
        "film": rng.choice(VALUES["film"]),
        "person": rng.choice(VALUES["person"]),
        "food": rng.choice(VALUES["food"]),
        "drug": rng.choice(VALUES["drug"]),
        "lang": rng.choice(CODES["lang"])[0],
        "pet": rng.choice(("grey", "green", "little", "old", "wild")),
        "oldyear": str(rng.randint(1850, 2015)),
        "number": str(rng.randint(1000, 99999)),
    }


def _weekend_fits(said: str, reply: str) -> bool:
    """Whether "Yes" and "No" mean the weekend: some ask for a working day instead."""
    other = re.search("working day|weekday|have to work|Saturday or Sunday", said)
    return not other or (
        reply.startswith(("Today is {weekday}, so",)) is False and "{weekendyes}" not in reply
    )


def _filled(text: str, slots: Mapping[str, str]) -> str:
    return re.sub(r"\{(\w+)\}", lambda found: slots[found[1]], text)


def talk(seed: int, count: int) -> Iterator[dict[str, Any]]:
    """Yield replies without a call: ``now``, ``task``, names of ``functions``, ``reply``."""
    rng = Random(seed)
    book = _talk_book()
    total = sum(_TALK_SHARES.values())
    plan = [k for k, share in _TALK_SHARES.items() for _ in range(round(share * count / total))]
    plan += ["hello"] * (count - len(plan))
    rng.shuffle(plan)
    times: dict[str, int] = {}
    for kind in plan[:count]:
        openings, replies = book[kind]
        if kind == "weekend":
            replies = (*replies, "It is {weekday}.", "Today is {weekday}, {date}.")
        now = date(2024, 1, 1) + timedelta(days=rng.randrange(365 * 6))
        names = _api_names(rng)
        slots = _talk_slots(rng, now, names)
        for _ in range(60):
            raw = rng.choice(openings)
            said = _filled(raw, slots)
            if kind not in _PLAIN_TALK or len(said) > 12:
                if rng.random() < 0.25:
                    head = rng.choice(_BEFORE_TALK)
                    said = head + (said if said[:2] in {"I ", "I'"} else said[0].lower() + said[1:])
                if rng.random() < 0.2 and said[-1].isalpha():
                    said += rng.choice(_AFTER_TALK)
            if rng.random() < 0.2:
                said = said[0].upper() + said[1:]
            if rng.random() < 0.12:
                said = said.rstrip("?.!")
            if rng.random() < 0.08:
                said = said.lower()
            if rng.random() < 0.07:
                said = typos(said, rng, 0.15)
            if kind in {"hello", "thanks", "bye"} and rng.random() < 0.3:
                said += rng.choice(("!", "!!", ".", " :)", " toolsrv", "...", " 🙏", " 😊"))
            if kind in {"can", "who", "how", "chatgpt"} and rng.random() < 0.12:
                said = f"{rng.choice(('Hi!', 'Hello.', 'Good morning!', 'Hey.'))} {said[0].upper() + said[1:]}"
            key = f"{said.lower()} {now if kind in _DATED_TALK else ''}"
            if times.get(key, 0) < (1 if rng.random() < 0.8 else 4):
                break
        times[key] = times.get(key, 0) + 1
        fitting = [
            one
            for one in replies
            if not (one.startswith("No,") and kind == "chatgpt")
            or re.match(
                "are you|is (this|it)|you're|so basically|be honest|bist|es-tu|¿eres",
                raw,
                re.IGNORECASE,
            )
        ]
        if kind == "weekend":
            fitting = [one for one in fitting if _weekend_fits(raw, one)]
        reply = rng.choice(fitting)
        if kind in {"hello", "howareyou", "who", "thanks", *_DATED_TALK} and reply.count(".") < 2:
            asks = "?" in reply or "ask" in reply.lower() or "ell me" in reply
            if not asks and rng.random() < 0.2:
                reply += f" {rng.choice(_TAILS[:4] if kind != 'thanks' else _TAILS[2:])}"
        reply = _filled(reply, slots)
        yield {"now": now.isoformat(), "task": said, "functions": names, "reply": reply}
