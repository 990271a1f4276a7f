"""Values of the services: the words of a person, and the argument that they mean."""

from __future__ import annotations

import datetime as dt
import random
import re
import unicodedata
from functools import cache
from typing import Any

from toolsrv_lab.conversations.wording import DATA, MONTHS, NUMBERS, WEEKDAYS, ordinal

SLOT = re.compile(r"\{([^{}]+)\}")

Drawn = tuple[str, Any]
"""The words of a person, and the argument that they mean."""


class UnfitError(Exception):
    """A form needs a value that this episode does not have."""


@cache
def lists() -> dict[str, list[str]]:
    """Return the pools: name -> entries."""
    found: dict[str, list[str]] = {}
    name = ""
    for line in (DATA / "services_a_pools.txt").read_text("utf-8").splitlines():
        if line.startswith("[") and line.endswith("]"):
            name = line[1:-1]
            found.setdefault(name, [])
        elif line.strip() and not line.startswith("#"):
            found[name] += [one.strip() for one in line.split(" | ")]
    return found


def _written(rng: random.Random, day: dt.date) -> str:
    month = MONTHS[day.month - 1]
    return rng.choice(
        (
            f"{day.day} {month} {day.year}",
            f"{month} {day.day}, {day.year}",
            f"{month} {ordinal(day.day)}, {day.year}",
            f"the {ordinal(day.day)} of {month} {day.year}",
            day.isoformat(),
            f"{day.day}. {month} {day.year}",
            f"{day.day} {month[:3]} {day.year}",
        )
    )


def _coming(now: dt.date, month: int, day: int) -> dt.date:
    found = dt.date(now.year, month, day)
    return found if found > now else dt.date(now.year + 1, month, day)


def _day(rng: random.Random, now: dt.date, *, on: bool) -> Drawn:
    """A day to come, with or without its preposition."""
    kind = rng.randrange(9)
    pre = "on " if on else ""
    if kind == 0:
        return "tomorrow", (now + dt.timedelta(1)).isoformat()
    if kind == 1:
        day = now + dt.timedelta(rng.randint(1, 7))
        said = WEEKDAYS[day.weekday()]
        return rng.choice((pre + said, f"this coming {said}")), day.isoformat()
    if kind == 2 and on:
        n = rng.randint(2, 10)
        said = rng.choice((f"in {NUMBERS[n]} days", f"in {n} days"))
        return said, (now + dt.timedelta(n)).isoformat()
    if kind == 3 and on:
        n = rng.randint(2, 6)
        return f"in {NUMBERS[n]} weeks", (now + dt.timedelta(7 * n)).isoformat()
    if kind == 4:
        day = _coming(now, rng.randint(1, 12), rng.randint(1, 28))
        month = MONTHS[day.month - 1]
        said = rng.choice(
            (
                f"{day.day} {month}",
                f"{month} {day.day}",
                f"the {ordinal(day.day)} of {month}",
                f"{month} {ordinal(day.day)}",
            )
        )
        return pre + said, day.isoformat()
    if kind == 5:
        d = rng.randint(1, 28)
        day = now.replace(day=d)
        if day <= now:
            day = (now.replace(day=28) + dt.timedelta(6)).replace(day=d)
        return f"{pre}the {ordinal(d)}", day.isoformat()
    if kind == 6:
        n = rng.choice((0, 1, 1, 2, 7))
        said = {0: "today", 1: "tomorrow", 2: "the day after tomorrow", 7: "a week from today"}[n]
        return said, (now + dt.timedelta(n)).isoformat()
    day = now + dt.timedelta(rng.randint(3, 400))
    return pre + _written(rng, day), day.isoformat()


def _past(rng: random.Random, now: dt.date, *, on: bool) -> Drawn:
    kind = rng.randrange(5)
    if kind == 0:
        return "yesterday", (now - dt.timedelta(1)).isoformat()
    if kind == 1:
        day = now - dt.timedelta(rng.randint(1, 7))
        return f"last {WEEKDAYS[day.weekday()]}", day.isoformat()
    if kind == 2:
        n = rng.randint(2, 9)
        return f"{rng.choice((str(n), NUMBERS[n]))} days ago", (now - dt.timedelta(n)).isoformat()
    day = now - dt.timedelta(rng.randint(3, 500))
    return ("on " if on else "") + _written(rng, day), day.isoformat()


def _month_end(day: dt.date) -> dt.date:
    return (day.replace(day=28) + dt.timedelta(4)).replace(day=1) - dt.timedelta(1)


def _range(rng: random.Random, now: dt.date, *, past: bool) -> Drawn:
    """A span of days: words, and its first and last day."""
    monday = now - dt.timedelta(now.weekday())
    kind = rng.randrange(7)
    sign = -1 if past else 1
    if kind == 0:
        return "this week", (monday.isoformat(), (monday + dt.timedelta(6)).isoformat())
    if kind == 1:
        start = monday + dt.timedelta(7 * sign)
        said = "last week" if past else "next week"
        return said, (start.isoformat(), (start + dt.timedelta(6)).isoformat())
    if kind == 2:
        start = (
            (now.replace(day=1) - dt.timedelta(1)).replace(day=1)
            if past
            else _month_end(now) + dt.timedelta(1)
        )
        said = "last month" if past else "next month"
        return said, (start.isoformat(), _month_end(start).isoformat())
    if kind == 3:
        start = now.replace(day=1)
        return "this month", (start.isoformat(), _month_end(now).isoformat())
    if kind == 4:
        year = now.year - rng.randint(1, 2) if past else now.year + 1
        start = dt.date(year, rng.randint(1, 12), 1)
        said = f"in {MONTHS[start.month - 1]} {year}"
        return said, (start.isoformat(), _month_end(start).isoformat())
    start = now + dt.timedelta(sign * rng.randint(20, 300))
    end = start + dt.timedelta(rng.randint(2, 14))
    said = rng.choice(("from {} to {}", "between {} and {}", "from {} until {}"))
    return said.format(_written(rng, start), _written(rng, end)), (
        start.isoformat(),
        end.isoformat(),
    )


def _clock(rng: random.Random) -> Drawn:
    hour, minute = rng.randint(7, 20), rng.choice((0, 0, 0, 15, 30, 30, 45, 10, 20, 40, 50, 5))
    value = f"{hour:02d}:{minute:02d}"
    half = f"{(hour - 1) % 12 + 1}"
    pm = "am" if hour < 12 else "pm"
    if minute == 0:
        said = rng.choice(
            (
                f"{half} {pm}",
                value,
                f"{half}{pm}",
                f"{half} o'clock {'in the morning' if hour < 12 else 'in the afternoon' if hour < 18 else 'in the evening'}",
            )
        )
        return ("noon" if hour == 12 and rng.random() < 0.5 else said), value
    return rng.choice((f"{half}:{minute:02d} {pm}", value, f"{half}.{minute:02d}{pm}")), value


def _moment(rng: random.Random, now: dt.date) -> Drawn:
    day, iso = _day(rng, now, on=rng.random() < 0.6)
    said, value = _clock(rng)
    return f"{day} at {said}", f"{iso}T{value}:00"


def _minutes(rng: random.Random) -> Drawn:
    return rng.choice(
        (
            ("half an hour", 30),
            ("an hour", 60),
            ("an hour and a half", 90),
            ("two hours", 120),
            ("a quarter of an hour", 15),
            ("three quarters of an hour", 45),
            ("one hour", 60),
            ("90 minutes", 90),
            ("45 minutes", 45),
            ("20 minutes", 20),
            ("25 mins", 25),
            ("40 minutes", 40),
            ("15 mins", 15),
            ("ten minutes", 10),
            ("50 minutes", 50),
            ("3 hours", 180),
            ("75 minutes", 75),
            ("35 min", 35),
            ("five minutes", 5),
        )
    )


def _phone(rng: random.Random) -> str:
    code, form = rng.choice(
        (
            ("44", "20 7### ####"),
            ("44", "7### ######"),
            ("49", "30 #######"),
            ("1", "415 555 ####"),
            ("1", "(312) 555-####"),
            ("33", "6 ## ## ## ##"),
            ("91", "98### #####"),
            ("234", "803 ### ####"),
            ("61", "4## ### ###"),
            ("385", "91 ### ####"),
            ("34", "6## ### ###"),
            ("39", "3## ### ####"),
            ("81", "90-####-####"),
            ("55", "11 9####-####"),
            ("254", "7## ######"),
            ("48", "5## ### ###"),
            ("90", "53# ### ## ##"),
            ("27", "82 ### ####"),
            ("64", "21 ### ####"),
            ("46", "70 ### ## ##"),
        )
    )
    return f"+{code} {_digits(rng, form)}"


def _digits(rng: random.Random, form: str) -> str:
    draw = {
        "#": "0123456789",
        "@": "ABCDEFGHJKLMNPQRSTUVWXYZ",
        "%": "abcdefghijkmnpqrstuvwxyz",
        "&": "0123456789abcdef",
    }
    out = ""
    for char in form:
        taken = rng.choice(draw[char]) if char in draw else char
        if char == "#" and taken == "0" and (not out or not out[-1].isalnum()):
            taken = rng.choice("123456789")
        out += taken
    return out


def _ascii(text: str) -> str:
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    return re.sub(r"[^a-z0-9]", "", plain.lower())


def _email(rng: random.Random, now: dt.date) -> str:
    first, last = _ascii(draw("first", rng, now)[1]), _ascii(draw("last", rng, now)[1])
    host = rng.choice(
        (
            _ascii(draw("company", rng, now)[1]),
            "mailbox",
            "postbox",
            "inbox-mail",
            _ascii(last) or "mail",
        )
    )
    end = rng.choice(
        (
            "com",
            "org",
            "net",
            "io",
            "de",
            "co.uk",
            "in",
            "ng",
            "com.au",
            "hr",
            "fr",
            "pl",
            "jp",
            "br",
        )
    )
    local = rng.choice(
        (
            f"{first}.{last}",
            f"{first[0]}.{last}" if first else last,
            f"{first}",
            f"{last}.{first}",
            f"{first}{rng.randint(2, 99)}",
        )
    )
    return f"{local}@{host}.{end}"


def stamp(rng: random.Random, now: dt.date, low: int, high: int) -> str:
    """Draw a time stamp between two distances from today, in days."""
    day = now + dt.timedelta(rng.randint(low, high))
    return f"{day.isoformat()}T{rng.randint(6, 21):02d}:{rng.randint(0, 59):02d}:00Z"


def draw(pool: str, rng: random.Random, now: dt.date) -> Drawn:
    """Draw from a pool: ``name`` or ``name(parameters)``. Raise KeyError for an unknown pool."""
    name, _, rest = pool.partition("(")
    given = rest[:-1] if rest else ""
    if name in ("int", "num"):
        low, high = given.split("..")
        if name == "int":
            exact = rng.randint(int(low), int(high))
            return str(exact), exact
        number = round(rng.uniform(float(low), float(high)), rng.choice((1, 2, 2)))
        if number == int(number):
            number = round(number + 0.5, 1)
        return str(number), number
    if name == "amount":
        low, high = given.split("..")
        number = rng.uniform(float(low), float(high))
        sum_: float = rng.choice((int(number), int(number) // 10 * 10 + 10, round(number, 2)))
        return str(sum_), sum_
    if name == "code":
        text = _digits(rng, given)
        return text, text
    if name == "of":
        said, arrow, value = rng.choice(given.split("/")).partition("=>")
        said = SLOT.sub(lambda found: draw(found[1], rng, now)[0], said.strip())
        return said, value.strip() if arrow else said
    if name == "bool":
        flag = rng.random() < 0.5
        return str(flag).lower(), flag
    if name in ("stamp", "fstamp"):
        text = stamp(rng, now, -40, 0) if name == "stamp" else stamp(rng, now, 1, 60)
        return text, text
    if name in ("pdate", "fdate"):
        day = now + dt.timedelta(rng.randint(-200, -1) if name == "pdate" else rng.randint(1, 120))
        return day.isoformat(), day.isoformat()
    if name == "percent":
        whole = rng.randint(1, 20) * 5 if rng.random() < 0.5 else rng.randint(1, 99)
        return str(whole), whole
    if name in ("date", "day"):
        return _day(rng, now, on=name == "date")
    if name in ("pday", "pon"):
        return _past(rng, now, on=name == "pon")
    if name in ("range", "prange"):
        return _range(rng, now, past=name == "prange")
    if name == "time":
        return _clock(rng)
    if name == "when":
        return _moment(rng, now)
    if name == "minutes":
        return _minutes(rng)
    if name == "month":
        day = now - dt.timedelta(rng.randint(31, 500))
        return f"{MONTHS[day.month - 1]} {day.year}", f"{day.year}-{day.month:02d}"
    if name == "year":
        year = now.year - rng.randint(1, 4)
        return str(year), year
    if name == "phone":
        text = _phone(rng)
        return text, text
    if name == "phonee":
        text = _phone(rng)
        return text, "+" + re.sub(r"\D", "", text)
    if name == "email":
        text = _email(rng, now)
        return text, text
    if name == "ip":
        text = f"10.{rng.randint(0, 200)}.{rng.randint(0, 250)}.{rng.randint(2, 250)}"
        return text, text
    text = rng.choice(lists()[name])
    said, arrow, value = text.partition("=>")
    said = SLOT.sub(lambda found: draw(found[1], rng, now)[0], said.strip())
    return said, (value.strip() if arrow else said)
