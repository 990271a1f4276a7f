"""Values of one episode: drawn from pools, with the words for them."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date, timedelta
from functools import cache
from typing import Any

from toolsrv_lab.conversations.wording import DATA, MONTHS, NUMBERS, WEEKDAYS, enumerated, ordinal


@cache
def pools() -> dict[str, tuple[bool, tuple[tuple[str, ...], ...]]]:
    """Return pool -> (holds proper names, entries: a value and its wordings)."""
    out = {}
    for line in (DATA / "services_b_pools.txt").read_text(encoding="utf-8").splitlines():
        name, _, told = line.partition(": ")
        if told:
            entries = tuple(
                tuple(part.strip() for part in one.split("|"))
                for one in told.split(";")
                if one.strip()
            )
            out[name.lstrip("*")] = (name.startswith("*"), entries)
    return out


@dataclass(slots=True)
class Draw:
    """Draws values; ``used``: pool -> values drawn so far."""

    rng: random.Random
    now: date
    used: dict[str, list[tuple[Any, str]]] = field(default_factory=dict)

    def value(self, pool: str, drawn: Mapping[str, Any], after_on: bool) -> tuple[Any, str]:
        """Return a value that was not drawn before and the words for it."""
        for _ in range(30):
            found = self.once(pool, drawn, after_on=after_on)
            if all(found[0] != value for value, _ in self.used.get(pool, ())):
                break
        self.used.setdefault(pool, []).append(found)
        return found

    def once(
        self, pool: str, drawn: Mapping[str, Any] | None = None, *, after_on: bool = False
    ) -> tuple[Any, str]:
        """Return a value of a pool and the words for it.

        Args:
            pool: ``name`` or ``name(argument;argument)``.
            drawn: Values of the other parameters.
            after_on: The word "on" stands before the value.

        Raises:
            ValueError: There is no such pool.
        """
        name, _, rest = pool.partition("(")
        args = rest.rstrip(")").split(";") if rest else []
        if name in pools():
            entry = self.rng.choice(pools()[name][1])
            return entry[0], self.rng.choice(entry[1:] or entry)
        with_arguments: dict[str, Callable[[list[str]], tuple[Any, str]]] = {
            "pick": self._pick,
            "int": self._int,
            "dig": self._dig,
            "num": self._num,
            "unit": self._unit,
            "nums": self._nums,
            "list": self._list,
            "goods": self._goods,
            "id": self._id,
            "born": self._born,
            "country": self._country,
        }
        if name in with_arguments:
            return with_arguments[name](args)
        others: dict[str, Callable[[], tuple[Any, str]]] = {
            "email": self._email,
            "ip": self._ip,
            "phone": self._phone,
            "time": self._time,
            "moment": self._moment,
            "money": self._money,
            "date": lambda: self._date(after_on=after_on),
            "past": lambda: self._past(args, after_on=after_on),
            "later": lambda: self._later(args, drawn or {}),
        }
        if name not in others:
            raise ValueError(f"no pool {pool!r}")
        return others[name]()

    def _pick(self, args: list[str]) -> tuple[Any, str]:
        entry = self.rng.choice(args).split("|")
        try:
            value = json.loads(entry[0])
        except ValueError:
            value = entry[0]
        return value, self.rng.choice(entry[1:] or entry)

    def _int(self, args: list[str]) -> tuple[Any, str]:
        low, high, *step = map(int, args)
        value = self.rng.randrange(low, high + 1, step[0] if step else 1)
        return value, NUMBERS[value] if 1 < value <= 12 and self.rng.random() < 0.4 else str(value)

    def _dig(self, args: list[str]) -> tuple[Any, str]:
        """An integer that is always written in digits."""
        low, high, *step = map(int, args)
        value = self.rng.randrange(low, high + 1, step[0] if step else 1)
        return value, str(value)

    def _num(self, args: list[str]) -> tuple[Any, str]:
        value: float = round(
            self.rng.uniform(float(args[0]), float(args[1])), int(args[2]) if len(args) > 2 else 1
        )
        if value == int(value):
            value = int(value)
        return value, str(value)

    def _unit(self, args: list[str]) -> tuple[Any, str]:
        """``unit;low;high;big unit;factor``: a number in ``unit``, written in it or in the big unit."""
        low, high = int(args[1]), int(args[2])
        if len(args) > 3 and self.rng.random() < 0.5:
            factor = int(args[4])
            big = self.rng.choice(
                [n / 2 for n in range(max(1, 2 * low // factor), max(2, 2 * high // factor) + 1)]
            )
            shown = str(int(big)) if big == int(big) else str(big)
            if factor == 60 and big == 0.5:
                return 30, "half an hour"
            return int(
                big * factor
            ), f"{shown} {args[3] if big != 1 else args[3].removesuffix('s')}"
        value = self.rng.randint(low, high)
        if value > 200:
            value = round(value, -1)
        return value, f"{value} {args[0]}"

    def _nums(self, args: list[str]) -> tuple[Any, str]:
        """``least;most;low;high;digits``: a list of numbers."""
        count = self.rng.randint(int(args[0]), int(args[1]))
        values = [self._num(args[2:])[0] for _ in range(count)]
        said = [str(one) for one in values]
        shape = self.rng.randrange(3)
        return values, enumerated(said) if shape == 0 else ", ".join(
            said
        ) if shape == 1 else "[" + ", ".join(said) + "]"

    def _list(self, args: list[str]) -> tuple[Any, str]:
        """``pool;least;most``: a list of values of a pool."""
        entries = self.rng.sample(pools()[args[0]][1], self.rng.randint(int(args[1]), int(args[2])))
        said = [self.rng.choice(one[1:] or one) for one in entries]
        return [one[0] for one in entries], enumerated(
            said
        ) if self.rng.random() < 0.8 else ", ".join(said)

    def _goods(self, args: list[str]) -> tuple[Any, str]:
        """``pool;name field;quantity field;least;most``: a list of things with quantities."""
        things = self.rng.sample(pools()[args[0]][1], self.rng.randint(int(args[3]), int(args[4])))
        out, said = [], []
        for thing in things:
            count = self.rng.randint(1, 12)
            out.append({args[1]: thing[0], args[2]: count})
            told = self.rng.choice(thing[1:] or thing)
            said.append(f"{count} x {told}" if self.rng.random() < 0.35 else f"{count} {told}")
        return out, enumerated(said)

    def _id(self, args: list[str]) -> tuple[Any, str]:
        value = code(self.rng, self.rng.choice(args))
        return value, value

    def _email(self) -> tuple[Any, str]:
        name = self.once("person")[0].lower().replace("'", "").split()
        shape = self.rng.choice(["{0}.{1}", "{0}{n}", "{0}_{1}", "{1}.{0}", "{0}", "{0}{1}"])
        local = shape.format(name[0], name[-1], n=self.rng.randint(1, 99))
        value = f"{local}@{self.once('domain')[0]}".encode("ascii", "ignore").decode()
        return value, value

    def _ip(self) -> tuple[Any, str]:
        value = ".".join(str(self.rng.randint(1, 254)) for _ in range(4))
        return value, value

    def _phone(self) -> tuple[Any, str]:
        dial = self.rng.choice(countries())["dial"]
        value = dial + "".join(
            str(self.rng.randint(0 if n else 2, 9)) for n in range(self.rng.randint(8, 9))
        )
        if self.rng.random() < 0.3:
            number = value[len(dial) :]
            return value, f"{dial} {number[:3]} {number[3:6]} {number[6:]}"
        return value, value

    def _time(self) -> tuple[Any, str]:
        hour, minute = self.rng.randint(6, 22), self.rng.choice([0, 0, 15, 30, 45])
        value = f"{hour:02d}:{minute:02d}"
        half = f"{(hour - 1) % 12 + 1}{f':{minute:02d}' if minute else ''} {'am' if hour < 12 else 'pm'}"
        return value, self.rng.choice([value, half, half.replace(" ", "")])

    def _date(self, *, after_on: bool) -> tuple[Any, str]:
        return self._say(
            self.now + timedelta(self.rng.choice([0, 1, 1, 2, 3, self.rng.randint(1, 200)])),
            after_on,
        )

    def _past(self, args: list[str], *, after_on: bool) -> tuple[Any, str]:
        far = int(args[0]) if args else 300
        return self._say(
            self.now - timedelta(self.rng.choice([1, 2, *[self.rng.randint(3, far)] * 4])), after_on
        )

    def _later(self, args: list[str], drawn: Mapping[str, Any]) -> tuple[Any, str]:
        """``parameter;least;most``: some days after another date."""
        day = date.fromisoformat(
            next(one for key, one in drawn.items() if f".{key}".endswith(f".{args[0]}"))
        ) + timedelta(self.rng.randint(int(args[1]), int(args[2])))
        return day.isoformat(), self._full(day)

    def _full(self, day: date) -> str:
        month = MONTHS[day.month - 1]
        return self.rng.choice(
            [
                day.isoformat(),
                f"{day.day} {month} {day.year}",
                f"{month} {day.day}, {day.year}",
                f"{month} {ordinal(day.day)} {day.year}",
                f"{ordinal(day.day)} {month} {day.year}",
                f"{day.day}.{day.month}.{day.year}",
                f"{month[:3]} {day.day} {day.year}",
            ]
        )

    def _say(self, day: date, after_on: bool) -> tuple[str, str]:
        far = (day - self.now).days
        near = {0: "today", 1: "tomorrow", -1: "yesterday", 2: "the day after tomorrow"}
        if far in near and self.rng.random() < 0.85:
            return day.isoformat(), near[far]
        if after_on and 2 <= far <= 21 and self.rng.random() < 0.4:
            if far % 7 == 0:
                return day.isoformat(), f"in {NUMBERS[far // 7]} weeks" if far > 7 else "in a week"
            return (
                day.isoformat(),
                f"in {NUMBERS[far] if far <= 12 and self.rng.random() < 0.5 else far} days",
            )
        if after_on and 2 <= -far <= 20 and self.rng.random() < 0.4:
            return day.isoformat(), f"{-far} days ago"
        if after_on and 2 <= far <= 6 and self.rng.random() < 0.5:
            return day.isoformat(), WEEKDAYS[day.weekday()]
        month = MONTHS[day.month - 1]
        if 0 < abs(far) < 150 and self.rng.random() < 0.4:
            short = [
                f"{month} {ordinal(day.day)}",
                f"{day.day} {month}",
                f"{month} {day.day}",
                f"{ordinal(day.day)} of {month}",
            ]
            return day.isoformat(), self.rng.choice(short)
        return day.isoformat(), self._full(day)

    def _born(self, args: list[str]) -> tuple[Any, str]:
        low, high = map(int, args or ["1940", "2012"])
        day = date(self.rng.randint(low, high), self.rng.randint(1, 12), self.rng.randint(1, 28))
        return day.isoformat(), self._full(day)

    def _moment(self) -> tuple[Any, str]:
        day, said = self._say(
            self.now + timedelta(self.rng.choice([0, 1, self.rng.randint(2, 90)])), False
        )
        time, told = self._time()
        return f"{day}T{time}:00", self.rng.choice(
            [f"{said} at {told}", f"{told} on {said}"]
            if said[0] not in "ty"
            else [f"{said} at {told}"]
        )

    def _country(self, args: list[str]) -> tuple[Any, str]:
        """``name``, ``iso``, ``currency``, ``dial`` or ``capital``: that of a country, written as itself or as the country's name."""
        one = self.rng.choice(countries())
        key = args[0] if args else "name"
        return one[key], one[key] if key in ("name", "capital", "dial") else one["name"]

    def _money(self) -> tuple[Any, str]:
        """A currency code, written as code, by name or by country."""
        entry = self.rng.choice(pools()["currency"][1])
        return entry[0], self.rng.choice(entry)


@cache
def countries() -> tuple[dict[str, str], ...]:
    """Return the countries: name, ISO code, capital, currency, dial code."""
    keys = ("name", "iso", "capital", "currency", "dial")
    return tuple(dict(zip(keys, one, strict=True)) for one in pools()["countries"][1])


def code(rng: random.Random, pattern: str) -> str:
    """``#`` a digit, ``^`` a capital letter, ``_`` a small letter, ``*`` a hexadecimal sign."""
    made = {
        "#": "0123456789",
        "^": "ABCDEFGHJKLMNPRSTUVWXYZ",
        "_": "abcdefghkmnprstuvwxyz",
        "*": "0123456789abcdef",
    }
    return "".join(rng.choice(made[sign]) if sign in made else sign for sign in pattern)
