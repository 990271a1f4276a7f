"""Values of one function of a task, with marks around the words for them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from random import Random
from typing import Any

from toolsrv_lab.conversations.corners.catalog import CODES, VALUES, Family, split_list
from toolsrv_lab.conversations.corners.moments import (
    GRAMS,
    MINUTES,
    SECONDS,
    coming_day,
    coming_span,
    count_words,
    day_part,
    draw_clock,
    number_words,
    past_day,
    past_span,
    round_number,
    time_words,
)
from toolsrv_lab.conversations.wording import MONTHS, NUMBERS, WEEKDAYS

OPEN, MID, SHUT = "\ue000", "\ue001", "\ue002"


@dataclass
class Told:
    """A value in a task: text with marks, plain text, and text without the preposition."""

    text: str
    plain: str
    bare: str
    plain_bare: str
    argument: Any
    iso: str = ""
    name: str = ""


def mark_value(ident: str, text: str) -> str:
    """Return a text between marks that name the argument it stands for."""
    return f"{OPEN}{ident}{MID}{text}{SHUT}"


def unmarked(text: str) -> str:
    """Return a text without marks."""
    text = re.sub(f"{OPEN}[^{MID}]*{MID}", "", text)
    return text.replace(SHUT, "")


def read_marks(text: str) -> tuple[str, dict[str, str]]:
    """Return the text without marks, and argument -> the words between its marks."""
    out: list[str] = []
    length = 0
    found: dict[str, str] = {}
    stack: list[tuple[str, int]] = []
    place = 0
    while place < len(text):
        char = text[place]
        if char == OPEN:
            end = text.index(MID, place)
            stack.append((text[place + 1 : end], length))
            place = end + 1
            continue
        if char == SHUT:
            ident, start = stack.pop()
            found.setdefault(ident, "".join(out)[start:].strip())
            place += 1
            continue
        out.append(char)
        length += 1
        place += 1
    return "".join(out), found


def code(pattern: str, rng: Random) -> str:
    """Return a code: 9 a digit, Z a capital, z a small letter, f a hexadecimal digit."""
    letters = "ABCDEFGHJKLMNPRSTUVWXYZ"
    if pattern.startswith("978"):
        return "978" + "".join(rng.choice("0123456789") for _ in pattern[3:])
    digits = "123456789"
    out = []
    for char in pattern:
        if char == "9":
            out.append(rng.choice(digits))
            digits = "0123456789"
        elif char in "Zzf":
            pool = {"Z": letters, "z": letters.lower(), "f": "0123456789abcdef"}[char]
            out.append(rng.choice(pool))
        else:
            out.append(char)
    return "".join(out)


def _quoted(text: str, rng: Random) -> tuple[str, str]:
    if '"' in text:
        return "'", "'"
    return rng.choice((('"', '"'), ('"', '"'), ("“", "”"), ("«", "»"), ("`", "`")))


FORMS: Mapping[str, Sequence[str]] = {
    "date": ("iso",) * 8 + ("words", "dmy"),
    "pdate": ("iso",) * 9 + ("dmy",),
    "country": ("name", "name", "a2", "a2", "a3"),
    "lang": ("name", "a2", "a2", "a3"),
    "cur": ("code",) * 9 + ("name",),
    "mcur": ("code",),
    "dt": ("seconds", "seconds", "minutes", "words"),
    "dts": ("seconds", "seconds", "minutes"),
    "dte": ("seconds",),
    "weekday": ("full", "lower"),
    "month": ("number", "name", "number"),
}


class Fill:
    """Values for one function of a task."""

    def __init__(self, rng: Random, now: date, step: str, *, lower: bool = False) -> None:
        self.rng, self.now, self.step, self.lower = rng, now, step, lower
        self.told: dict[str, Told] = {}

    def _low(self, words: str) -> str:
        return words.lower() if self.lower else words

    def put(self, name: str, words: str, argument: Any, lead: str = "", **more: str) -> Told:
        """Note a value that stands in the task as ``words``."""
        marked = mark_value(f"{self.step}.{name}", words)
        one = Told(lead + marked, lead + words, marked, words, argument, **more)
        self.told[name] = one
        return one

    def name(self, name: str, value: str, *, shown: str = "") -> Told:
        """Note a proper name; a hasty writer puts it in small letters."""
        words = shown or value
        if self.lower and words.istitle() and self.rng.random() < 0.6:
            one = self.put(name, words.lower(), value)
            one.plain = one.plain_bare = words
            return one
        return self.put(name, words, value)

    def value(self, name: str, kind: str, form: str, family: Family) -> None:
        """Choose a value of the kind for the argument ``name``, and for those bound to it."""
        rng = self.rng
        head, *rest = kind.split()
        if head == "city":
            self.name(name, rng.choice(VALUES["city"]))
        elif head.startswith("@@"):
            text = rng.choice(
                VALUES[head[0] + head[2:]] if head[1:] in VALUES else VALUES[head[1:]]
            )
            left, right = _quoted(text, rng)
            one = self.put(name, text, text)
            one.text, one.plain = left + one.text + right, f'"{text}"'
        elif head.startswith("@"):
            value = rng.choice(VALUES[head[1:]])
            self.name(name, value)
        elif head in VALUES and head in {"email", "url", "phone"}:
            self.put(name, rng.choice(VALUES[head]), self.last_argument(name))
            self.told[name].argument = self.told[name].plain
        elif head == "code":
            value = code(rest[0], rng)
            self.put(name, value, value)
        elif head in {"country", "lang"}:
            full, two, three, other = rng.choice(CODES[head])
            said = rng.choice((full, full, *split_list(other, "/"))) if other else full
            value = {"name": full, "a2": two, "a3": three}[form]
            one = self.put(name, self._low(said) if rng.random() < 0.4 else said, value)
            one.name = full if one.plain_bare.lower() == one.plain_bare else ""
            if one.name:
                one.plain = one.plain_bare = one.name
        elif head == "cur":
            full, three, _, other = self._currency()
            said = rng.choice((full, full, *split_list(other, "/")))
            self.put(name, said, three if form == "code" else full)
        elif head == "money":
            self._money(name, rest, family)
        elif head in {"mcur", "re", "pre", "dte", "u1"}:
            return
        elif head == "date":
            lead, words, day = coming_day(self.now, rng)
            self._day(name, lead, words, day, form)
        elif head == "pdate":
            lead, words, day = past_day(self.now, rng)
            self._day(name, lead, words, day, form)
        elif head in {"rs", "prs"}:
            words, first, last = (coming_span if head == "rs" else past_span)(self.now, rng)
            other_name = next(
                k for k, p in family.params.items() if p.kind == head.replace("s", "e")
            )
            self._pair(name, other_name, self._low(words), first.isoformat(), last.isoformat())
        elif head == "dt":
            lead, words, day = coming_day(self.now, rng)
            while re.search("morning|night|evening|later|US style|first\\)", words):
                lead, words, day = coming_day(self.now, rng)
            hour, minute = draw_clock(rng, 7, 21)
            clock = time_words(hour, minute, rng)
            if rng.random() < 0.75:
                told = f"{words} at {clock}"
            else:
                lead, told = "at ", f"{clock} {lead}{words}"
            told = self._low(told)
            stamp = f"{day.isoformat()}T{hour:02}:{minute:02}"
            value = {"seconds": f"{stamp}:00", "minutes": stamp, "words": told}[form]
            self.put(name, told, value, lead)
        elif head == "dts":
            self._hours(name, form, family)
        elif head == "time":
            hour, minute = draw_clock(rng)
            self.put(name, self._low(time_words(hour, minute, rng)), f"{hour:02}:{minute:02}")
        elif head == "year":
            if rng.random() < 0.3:
                words, year = rng.choice(
                    (("this year", self.now.year), ("last year", self.now.year - 1))
                )
                if family.key == "holidays" and rng.random() < 0.5:
                    words, year = "next year", self.now.year + 1
                self.put(name, words, year)
            else:
                year = self.now.year - rng.randint(0, 20)
                self.put(name, str(year), year)
        elif head == "month":
            number = rng.randint(1, 12)
            words = MONTHS[number - 1]
            if rng.random() < 0.25:
                words = rng.choice((words[:3], f"mid {words}", "this month", "next month"))
                if words.startswith("this"):
                    number = self.now.month
                if words.startswith("next"):
                    number = self.now.month % 12 + 1
            self.put(name, self._low(words), number if form == "number" else MONTHS[number - 1])
        elif head == "weekday":
            day_name = rng.choice(WEEKDAYS)
            words = rng.choice((day_name, f"{day_name}s", f"a {day_name}"))
            self.put(
                name, self._low(words), day_name if form == "full" else day_name.lower(), "on "
            )
        elif head == "int":
            number = round_number(int(rest[0]), int(rest[1]), rng)
            self.put(name, count_words(number, rng), number)
        elif head == "num":
            low, high, digits = float(rest[0]), float(rest[1]), int(rest[2])
            amount = round(rng.uniform(low, high), digits)
            value_n: float = int(amount) if digits == 0 or amount == int(amount) else amount
            words = f"{amount:.2f}" if digits == 2 and value_n != int(amount) else f"{value_n}"
            if digits == 1 and rng.random() < 0.25 and value_n != int(amount):
                words = f"{number_words(int(value_n))} point {NUMBERS[round(value_n * 10) % 10]}"
            self.put(name, words, value_n)
        elif head == "pct":
            number = rng.randint(int(rest[0]), int(rest[1]))
            words = rng.choice(
                (
                    f"{number}%",
                    f"{number} %",
                    f"{number} percent",
                    f"{number_words(number)} percent",
                    f"{number_words(number)} per cent",
                )
            )
            self.put(name, words, number)
        elif head in {"dur_min", "dur_s", "mass_g"}:
            table: Sequence[tuple[Any, ...]]
            table = {"dur_min": MINUTES, "dur_s": SECONDS, "mass_g": GRAMS}[head]
            row = rng.choice(table)
            self.put(name, rng.choice(row[1:]), row[0])
        elif head == "len_cm":
            number = rng.choice((150, 155, 160, 168, 172, 175, 180, 183, 190, 240, 250, 205, 195))
            number = rng.randint(148, 205) if rng.random() < 0.5 else number
            metres = f"{number / 100:g}"
            self.put(name, rng.choice((f"{metres} m", f"{metres} metres", f"{number} cm")), number)
        elif head == "qty":
            self._quantity(name, family)
        elif head == "u2":
            return
        elif head in {"enum", "enumint"}:
            self._enum(name, kind, head)
        elif head == "list":
            kind_ = rest[0]
            pool = VALUES[kind_.removeprefix("@")]
            items = rng.sample(pool, rng.randint(1, 3))
            self.put(name, joined(items, rng), items)
        else:
            raise ValueError(kind)

    def shown_name(self) -> dict[str, str]:
        """Return the full name of what the call is about, under ``name``; empty where there is none."""
        names = [one.name for one in self.told.values() if one.name]
        return {"name": names[-1]} if names else {}

    def last_argument(self, name: str) -> Any:
        """Return the argument noted for a name, or nothing."""
        return self.told[name].argument if name in self.told else None

    def _enum(self, name: str, kind: str, head: str) -> None:
        options = kind.removeprefix(head).strip().split(";")
        if head == "enumint":
            number = self.rng.choice(options)
            self.put(name, number, int(number))
            return
        one, said = self.rng.choice(options).split("=")
        self.put(name, self.rng.choice(said.split("/")), one)

    def _currency(self) -> list[str]:
        row = self.rng.choice(CODES["cur"][:12] if self.rng.random() < 0.5 else CODES["cur"])
        return [*row, "", ""][:4]

    def _day(self, name: str, lead: str, words: str, day: date, form: str) -> None:
        words = self._low(words)
        value = {
            "iso": day.isoformat(),
            "words": words,
            "dmy": f"{day.day:02}/{day.month:02}/{day.year}",
        }[form]
        self.put(name, words, value, lead, iso=value if form == "iso" else "")

    def _pair(self, name: str, other: str, words: str, first: Any, last: Any) -> None:
        one = self.put(name, words, first)
        both = mark_value(f"{self.step}.{other}", one.text)
        one.text = one.bare = both
        self.told[other] = replace(one, argument=last)
        if re.fullmatch(r"\d{4}-\d\d-\d\d", str(first)):
            one.iso = f"{first}|{last}"

    def _hours(self, name: str, form: str, family: Family) -> None:
        rng = self.rng
        other = next(k for k, p in family.params.items() if p.kind == "dte")
        lead, words, day = coming_day(self.now, rng)
        while re.search("morning|night|evening|later|US style|first\\)", words):
            lead, words, day = coming_day(self.now, rng)
        hour = rng.randint(8, 18)
        length = rng.choice((1, 1, 2, 3))
        end = hour + length
        half = rng.choice((0, 0, 0, 30))
        if hour < 12 <= end or half:
            clock = rng.choice(
                (
                    f"from {hour}:{half:02} to {end}:{half:02}",
                    f"{hour:02}:{half:02}-{end:02}:{half:02}",
                    f"between {hour}:{half:02} and {end}:{half:02}",
                )
            )
        else:
            part = "am" if end < 12 else "pm"
            one, two = hour % 12 or 12, end % 12 or 12
            clock = rng.choice(
                (
                    f"from {one} to {two} {part}",
                    f"from {one} until {two} {day_part(hour)}"
                    if day_part(hour) == day_part(end)
                    else (f"from {one} until {two} {part}"),
                    f"{one}-{two}{part}",
                    f"between {number_words(one)} and {number_words(two)} {part}",
                )
            )
        told = self._low(f"{lead}{words} {clock}")
        tail = ":00" if form == "seconds" else ""
        stamp = day.isoformat()
        self._pair(
            name,
            other,
            told,
            f"{stamp}T{hour:02}:{half:02}{tail}",
            f"{stamp}T{end:02}:{half:02}{tail}",
        )

    def _money(self, name: str, rest: Sequence[str], family: Family) -> None:
        rng = self.rng
        low, high = int(rest[0]), int(rest[1])
        other = next((k for k, p in family.params.items() if p.kind == f"mcur {name}"), "")
        full, three, symbol, more = self._currency()
        number = round_number(low, high, rng)
        value: float = number
        words = count_words(number, rng)
        if rng.random() < 0.2 and high <= 6000:
            value = round(rng.uniform(low, high), 2)
            words = f"{value:.2f}"
            value = int(value) if value == int(value) else value
        one = mark_value(f"{self.step}.{name}", words)
        digits = words.replace(",", "").replace(".", "").removesuffix("k").isdigit()
        if symbol and digits and rng.random() < 0.5:
            unit = mark_value(f"{self.step}.{other}", symbol)
            text = f"{unit}{one}" if rng.random() < 0.8 else f"{one} {unit}"
        else:
            said = rng.choice(
                (full, full, three, *[m for m in split_list(more, "/") if m != "the euro"])
            )
            text = f"{one} {mark_value(f'{self.step}.{other}', said)}"
        plain = unmarked(text)
        self.told[name] = Told(text, plain, text, plain, value)
        if other:
            self.told[other] = Told("", "", "", "", three)

    def _quantity(self, name: str, family: Family) -> None:
        rng = self.rng
        kinds = sorted({row[0] for row in CODES["unit"]})
        kind = rng.choice(kinds)
        first, second = rng.sample([row for row in CODES["unit"] if row[0] == kind], 2)
        number = rng.choice((rng.randint(2, 400), round(rng.uniform(0.5, 90), 1)))
        number = int(number) if number == int(number) else number
        words = count_words(number, rng) if isinstance(number, int) else str(number)
        if words.endswith("dozen"):
            words = str(number)
        other = next(k for k, p in family.params.items() if p.kind == "u1 " + name)
        third = next(k for k, p in family.params.items() if p.kind == "u2 " + name)
        unit = rng.choice(first[2].split("/"))
        text = (
            f"{mark_value(f'{self.step}.{name}', words)} {mark_value(f'{self.step}.{other}', unit)}"
        )
        self.told[name] = Told(text, unmarked(text), text, unmarked(text), number)
        self.told[other] = Told("", "", "", "", first[1])
        self.put(third, rng.choice(second[2].split("/")), second[1])


def joined(items: Sequence[str], rng: Random) -> str:
    """Return "a, b and c", in one of several manners."""
    if len(items) == 1:
        return items[0]
    head = ", ".join(items[:-1])
    if len(items) == 2:
        return f"{head} {rng.choice(('and', 'and', 'and', '&', 'plus'))} {items[-1]}"
    return f"{head}{rng.choice((' and ', ' and ', ', and ', ' & ', ', '))}{items[-1]}"
