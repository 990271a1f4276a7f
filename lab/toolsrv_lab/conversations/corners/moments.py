"""Days, spans, times and numbers as people write them."""

from __future__ import annotations

import calendar
from datetime import date, timedelta
from random import Random

from toolsrv_lab.conversations.wording import MONTHS, NUMBERS, WEEKDAYS, ordinal

_TENS = ["_", "_", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]


def _first(weekday: int, now: date) -> date:
    """The first such day strictly after today."""
    return now + timedelta(days=(weekday - now.weekday() - 1) % 7 + 1)


def _add_months(day: date, months: int) -> date:
    total = day.year * 12 + day.month - 1 + months
    year, month = divmod(total, 12)
    last = calendar.monthrange(year, month + 1)[1]
    return date(year, month + 1, min(day.day, last))


def _month_end(day: date) -> date:
    return day.replace(day=calendar.monthrange(day.year, day.month)[1])


_ORDINAL_WORDS = [
    "first",
    "second",
    "third",
    "fourth",
    "fifth",
    "sixth",
    "seventh",
    "eighth",
    "ninth",
    "tenth",
    "eleventh",
    "twelfth",
    "thirteenth",
    "fourteenth",
    "fifteenth",
]


def number_words(number: int) -> str:
    """Return the English words of a number below a thousand million."""
    if number < 20:
        return NUMBERS[number]
    if number < 100:
        tens, ones = divmod(number, 10)
        return _TENS[tens] + (f"-{NUMBERS[ones]}" if ones else "")
    if number < 1000:
        hundreds, rest = divmod(number, 100)
        return f"{NUMBERS[hundreds]} hundred" + (f" and {number_words(rest)}" if rest else "")
    if number < 1_000_000:
        thousands, rest = divmod(number, 1000)
        head = f"{number_words(thousands)} thousand"
        if not rest:
            return head
        return head + (" and " if rest < 100 else " ") + number_words(rest)
    millions, rest = divmod(number, 1_000_000)
    return f"{number_words(millions)} million" + (f" {number_words(rest)}" if rest else "")


def _written_date(day: date, rng: Random, *, year: bool) -> tuple[str, str]:
    """A calendar date as people write it: lead and words."""
    month = MONTHS[day.month - 1]
    short = month[:3]
    full = [
        ("on ", f"{day.day} {month}"),
        ("on ", f"{month} {day.day}"),
        ("on ", f"the {ordinal(day.day)} of {month}"),
        ("on ", f"{ordinal(day.day)} {month}"),
        ("on ", f"{day.day} {short}"),
        ("on ", f"{short} {ordinal(day.day)}"),
        ("on ", f"{WEEKDAYS[day.weekday()]} {day.day} {month}"),
        ("on ", f"{WEEKDAYS[day.weekday()]} the {ordinal(day.day)} of {month}"),
    ]
    if day.day <= 15:
        full.append(("on ", f"the {_ORDINAL_WORDS[day.day - 1]} of {month}"))
    if not year:
        return rng.choice(full)
    lead, words = rng.choice(full)
    more = [
        (lead, f"{words} {day.year}"),
        (lead, f"{words}, {day.year}"),
        ("on ", day.isoformat()),
        ("on ", f"{day.day:02}.{day.month:02}.{day.year}"),
        ("on ", f"{day.day}/{day.month}/{day.year % 100:02} (day first)"),
        ("on ", f"{day.month}/{day.day}/{day.year} (US style)"),
    ]
    return rng.choice([more[0], *more])


_FEASTS = (
    ("New Year's Day", 1, 1),
    ("New Year's Eve", 12, 31),
    ("Christmas Eve", 12, 24),
    ("Christmas Day", 12, 25),
    ("Boxing Day", 12, 26),
    ("Valentine's Day", 2, 14),
    ("Halloween", 10, 31),
    ("May Day", 5, 1),
)


def coming_day(now: date, rng: Random) -> tuple[str, str, date]:
    """Return today or a later day: preposition, words, day.

    "Friday", "this Friday": the first one strictly after today. "next Friday": the same, unless it
    is less than two days away, then a week later. "Friday week": a week after the first one.
    """
    words: tuple[str, ...]
    kind = rng.randrange(30)
    number = rng.randint(2, 9)
    weekday = rng.randrange(7)
    first = _first(weekday, now)
    name = WEEKDAYS[weekday]
    spoken = rng.choice((str(number), number_words(number)))
    if kind == 0:
        return "", rng.choice(("today", "today", "tonight", "later today", "this evening")), now
    if kind in {1, 2, 3}:
        words = ("tomorrow", "tomorrow", "tmrw", "tomorrow morning")
        return "", rng.choice(words), now + timedelta(days=1)
    if kind in {4, 5}:
        words = ("the day after tomorrow", "in two days", "in 2 days", "two days from now")
        return "", rng.choice(words), now + timedelta(days=2)
    if kind in {6, 7, 8}:
        if rng.random() < 0.5:
            return "on ", name, first
        return "", rng.choice((f"this {name}", f"this coming {name}", f"coming {name}")), first
    if kind in {9, 10, 11}:
        day = first if (first - now).days >= 2 else first + timedelta(days=7)
        return "", f"next {name}", day
    if kind == 12:
        words = (f"{name} week", f"a week on {name}", f"{name} week")
        return "", rng.choice(words), first + timedelta(days=7)
    if kind in {13, 14}:
        words = (f"in {spoken} days", f"{spoken} days from now", f"{spoken} days from today")
        return "", rng.choice(words), now + timedelta(days=number)
    if kind in {15, 16}:
        weeks = rng.randint(2, 6)
        spoken = rng.choice((str(weeks), number_words(weeks)))
        words = (f"in {spoken} weeks", f"{spoken} weeks from now", f"in {spoken} weeks' time")
        return "", rng.choice(words), now + timedelta(days=7 * weeks)
    if kind == 17:
        words = (
            "in a fortnight",
            "a fortnight from now",
            "a fortnight today",
            "two weeks from now",
        )
        return "", rng.choice(words), now + timedelta(days=14)
    if kind == 18:
        words = ("in a week", "a week from now", "a week today", "a week from today")
        return "", rng.choice(words), now + timedelta(days=7)
    if kind == 19:
        if rng.random() < 0.4:
            return "", "a week tomorrow", now + timedelta(days=8)
        months = rng.randint(1, 5)
        spoken = "a month" if months == 1 else f"{number_words(months)} months"
        words = (f"in {spoken}", f"{spoken} from now")
        return "", rng.choice(words), _add_months(now, months)
    if kind == 20:
        if rng.random() < 0.5:
            ends = ("the end of the month", "the end of this month")
            return "at ", rng.choice(ends), _month_end(now)
        words = ("the last day of the month", "the last day of this month")
        return "on ", rng.choice(words), _month_end(now)
    if kind == 21:
        start = _add_months(now.replace(day=1), 1)
        if rng.random() < 0.5:
            return "on ", "the first of next month", start
        return "at ", "the end of next month", _month_end(start)
    if kind in {22, 23}:
        day = now + timedelta(days=rng.randint(1, 27))
        return "on ", f"the {ordinal(day.day)}", day
    if kind == 24:
        feast, month, number = rng.choice(_FEASTS)
        day = date(now.year, month, number)
        return "on ", feast, day if day >= now else date(now.year + 1, month, number)
    day = now + timedelta(days=rng.randint(3, 340))
    if kind in {25, 26, 27}:
        return *_written_date(day, rng, year=False), day
    day = now + timedelta(days=rng.randint(3, 700))
    return *_written_date(day, rng, year=True), day


def past_day(now: date, rng: Random) -> tuple[str, str, date]:
    """Return an earlier day: preposition, words, day. "last Friday": the latest one strictly before today."""
    words: tuple[str, ...]
    kind = rng.randrange(14)
    weekday = rng.randrange(7)
    name = WEEKDAYS[weekday]
    if kind in {0, 1}:
        words = ("yesterday", "yesterday", "yesterday evening", "last night")
        return "", rng.choice(words[:2] if rng.random() < 0.8 else words), now - timedelta(days=1)
    if kind == 2:
        return "", "the day before yesterday", now - timedelta(days=2)
    if kind in {3, 4, 5}:
        back = (now.weekday() - weekday - 1) % 7 + 1
        return "", rng.choice((f"last {name}", f"this past {name}")), now - timedelta(days=back)
    if kind in {6, 7}:
        number = rng.randint(2, 12)
        spoken = rng.choice((str(number), number_words(number)))
        return "", f"{spoken} days ago", now - timedelta(days=number)
    if kind == 8:
        number = rng.randint(1, 5)
        spoken = "a week" if number == 1 else f"{number_words(number)} weeks"
        return "", f"{spoken} ago", now - timedelta(days=7 * number)
    if kind == 9:
        words = ("a fortnight ago", "two weeks ago")
        return "", rng.choice(words), now - timedelta(days=14)
    if kind == 10:
        number = rng.randint(1, 6)
        spoken = "a month" if number == 1 else f"{number_words(number)} months"
        return "", f"{spoken} ago", _add_months(now, -number)
    if kind == 11:
        return "at ", "the end of last month", now.replace(day=1) - timedelta(days=1)
    day = now - timedelta(days=rng.randint(3, 900))
    return *_written_date(day, rng, year=True), day


def _span_words(start: date, end: date, rng: Random, *, year: bool) -> str:
    month, other = MONTHS[start.month - 1], MONTHS[end.month - 1]
    tail = f" {end.year}" if year else ""
    if start.month == end.month and start.year == end.year:
        return rng.choice(
            (
                f"from {start.day} to {end.day} {month}{tail}",
                f"from the {ordinal(start.day)} to the {ordinal(end.day)} of {month}{tail}",
                f"from {month} {start.day} to {month} {end.day}{tail}",
                f"{start.day}-{end.day} {month}{tail}",
                f"{start.day}–{end.day} {month[:3]}{tail}",
                f"between {start.day} and {end.day} {month}{tail}",
            )
        )
    head = f" {start.year}" if year else ""
    return rng.choice(
        (
            f"from {start.day} {month}{head} to {end.day} {other}{tail}",
            f"from {month} {start.day}{head} until {other} {end.day}{tail}",
            f"between {start.day} {month}{head} and {end.day} {other}{tail}",
        )
    )


def coming_span(now: date, rng: Random) -> tuple[str, date, date]:
    """Return a later span of days: words, first day, last day. Weeks run from Monday to Sunday."""
    kind = rng.randrange(10)
    if kind == 0:
        monday = now + timedelta(days=7 - now.weekday())
        return "next week", monday, monday + timedelta(days=6)
    if kind == 1 and now.weekday() < 5:
        saturday = now + timedelta(days=5 - now.weekday())
        return "this weekend", saturday, saturday + timedelta(days=1)
    if kind == 2:
        month = _add_months(now.replace(day=1), rng.randint(1, 9))
        name = MONTHS[month.month - 1]
        return rng.choice((f"for the whole of {name}", f"all {name}")), month, _month_end(month)
    if kind == 3:
        first = _first(rng.randrange(7), now)
        days = rng.randint(1, 6)
        last = first + timedelta(days=days)
        return f"from {WEEKDAYS[first.weekday()]} to {WEEKDAYS[last.weekday()]}", first, last
    if kind == 4:
        first, days = now + timedelta(days=1), rng.randint(2, 6)
        words = "from tomorrow until {}"
        last = first + timedelta(days=days)
        if (last - now).days < 7:
            return words.format(WEEKDAYS[last.weekday()]), first, last
    if kind == 5:
        month = _add_months(now.replace(day=1), 1)
        return rng.choice(("next month", "for all of next month")), month, _month_end(month)
    year = rng.random() < 0.35
    first = now + timedelta(days=rng.randint(2, 240))
    last = first + timedelta(days=rng.randint(1, 21))
    return _span_words(first, last, rng, year=year), first, last


def past_span(now: date, rng: Random) -> tuple[str, date, date]:
    """Return an earlier span of days: words, first day, last day."""
    kind = rng.randrange(10)
    year = now.year - rng.randint(1, 6)
    if kind == 0:
        monday = now - timedelta(days=now.weekday() + 7)
        return "last week", monday, monday + timedelta(days=6)
    if kind == 1:
        end = now.replace(day=1) - timedelta(days=1)
        return "last month", end.replace(day=1), end
    if kind in {2, 3}:
        quarter = rng.randint(1, 4)
        start = date(year, quarter * 3 - 2, 1)
        words = (
            f"in Q{quarter} {year}",
            f"in the {_ORDINAL_WORDS[quarter - 1]} quarter of {year}",
            f"in {ordinal(quarter)} quarter {year}",
        )
        return rng.choice(words), start, _month_end(_add_months(start, 2))
    if kind == 4:
        return rng.choice((f"in {year}", f"in all of {year}")), date(year, 1, 1), date(year, 12, 31)
    if kind == 5:
        if rng.random() < 0.5:
            return f"in the first half of {year}", date(year, 1, 1), date(year, 6, 30)
        return f"in the second half of {year}", date(year, 7, 1), date(year, 12, 31)
    if kind in {6, 7}:
        month = rng.randint(1, 12)
        start = date(year, month, 1)
        return f"in {MONTHS[month - 1]} {year}", start, _month_end(start)
    if kind == 8:
        return "last year", date(now.year - 1, 1, 1), date(now.year - 1, 12, 31)
    first = now - timedelta(days=rng.randint(40, 900))
    last = first + timedelta(days=rng.randint(2, 30))
    return _span_words(first, last, rng, year=True), first, last


def day_part(hour: int) -> str:
    """Return the part of the day that an hour belongs to, as an adverb."""
    if hour < 12:
        return "in the morning"
    if hour < 18:
        return "in the afternoon"
    return "in the evening" if hour < 22 else "at night"


def time_words(hour: int, minute: int, rng: Random) -> str:
    """Return a time of day as people say it."""
    twelve, half = hour % 12 or 12, "am" if hour < 12 else "pm"
    name, following = number_words(twelve), number_words(twelve % 12 + 1)
    forms = [
        f"{hour:02}:{minute:02}",
        f"{twelve}:{minute:02} {half}",
        f"{twelve}.{minute:02}{half}",
    ]
    if hour and rng.random() < 0.3:
        forms.append(f"{hour}h{minute:02}")
    if hour == 12 and minute == 0:
        return rng.choice(("noon", "midday", "12 noon", "12:00"))
    if hour == 0:
        return "midnight" if minute == 0 else f"00:{minute:02}"
    if minute == 0:
        forms += [
            f"{twelve}{half}",
            f"{twelve} {half}",
            f"{name} {day_part(hour)}",
            f"{twelve} o'clock {day_part(hour)}",
            f"{twelve} {half[0]}.m.",
        ]
    after = hour + 1
    if minute == 30:
        forms += [f"half {name} {day_part(hour)}", f"half past {name} {day_part(hour)}"] * 2
    if minute == 15:
        forms += [
            f"quarter past {name} {day_part(hour)}",
            f"a quarter past {twelve} {day_part(hour)}",
        ]
    if minute == 45 and after not in {12, 24}:
        forms += [f"quarter to {following} {day_part(after)}"] * 2
    if minute in {5, 10, 20}:
        forms += [f"{number_words(minute)} past {name} {day_part(hour)}"] * 2
    if minute in {40, 50, 55} and after not in {12, 24}:
        forms += [f"{number_words(60 - minute)} to {following} {day_part(after)}"] * 2
    return rng.choice(forms)


def draw_clock(rng: Random, low: int = 6, high: int = 22) -> tuple[int, int]:
    """Draw hour and minute."""
    return rng.randint(low, high), rng.choice((0, 0, 0, 30, 30, 15, 45, 10, 20, 5, 50, 40))


def count_words(number: int, rng: Random) -> str:
    """Return an integer as people write it."""
    forms = [str(number), str(number)]
    if number < 100 or (number % 100 == 0 and number < 100_000):
        forms += [number_words(number)] * 2
    if number == 12:
        forms += ["a dozen"] * 2
    if number == 6:
        forms += ["half a dozen"]
    if number == 24:
        forms += ["two dozen"] * 2
    if number == 500_000:
        forms += ["half a million"] * 3
    if number == 250_000:
        forms += ["a quarter of a million", "250k"] * 2
    if number >= 1000:
        forms += [f"{number:,}", f"{number:,}"]
        if number % 100 == 0:
            thousands = number / 1000
            forms += [f"{thousands:g}k", f"{thousands:g} thousand"]
        if number % 1_000_000 == 0:
            forms += [f"{number // 1_000_000} million"]
    if number == 100:
        forms += ["a hundred"]
    if number == 1000:
        forms += ["a thousand"]
    if number == 50:
        forms += ["half a hundred"] if rng.random() < 0.1 else []
    return rng.choice(forms)


_USUAL_NUMBERS = (
    *(12, 24, 50, 100, 120, 250, 300, 1000, 1250, 1500, 2500, 4000, 7500, 12000, 20000),
    *(45000, 60000, 85000, 100000, 150000, 250000, 500000, 3600, 900, 48, 75, 360, 1800),
)


def round_number(low: int, high: int, rng: Random) -> int:
    """Draw an integer, most often one that people use."""
    if high <= 60:
        pool = [n for n in (6, 12, 24) if low <= n <= high]
        return rng.choice(pool) if pool and rng.random() < 0.25 else rng.randint(low, high)
    pool = [n for n in _USUAL_NUMBERS if low <= n <= high]
    if pool and rng.random() < 0.75:
        return rng.choice(pool)
    return rng.randint(low, high)


MINUTES = (
    (15, "a quarter of an hour", "15 minutes", "fifteen minutes", "15 min"),
    (20, "twenty minutes", "20 minutes", "20 mins"),
    (30, "half an hour", "30 minutes", "thirty minutes", "30 min"),
    (45, "three quarters of an hour", "45 minutes", "forty-five minutes"),
    (60, "an hour", "one hour", "60 minutes", "1 h"),
    (75, "an hour and a quarter", "75 minutes"),
    (90, "an hour and a half", "90 minutes", "1.5 hours", "one and a half hours"),
    (120, "two hours", "2 hours", "2h"),
    (150, "two and a half hours", "2.5 hours"),
    (180, "three hours", "3 hours"),
    (240, "four hours", "4 h"),
    (480, "eight hours", "8 hours"),
)

SECONDS = (
    (30, "half a minute", "30 seconds", "thirty seconds"),
    (45, "45 seconds", "forty-five seconds"),
    (60, "a minute", "one minute", "60 seconds"),
    (90, "a minute and a half", "90 seconds", "1.5 minutes"),
    (120, "two minutes", "2 minutes", "2 min"),
    (180, "three minutes", "3 mins"),
    (240, "four minutes", "4 minutes"),
    (300, "five minutes", "5 minutes", "5 min"),
    (420, "seven minutes", "7 minutes"),
    (600, "ten minutes", "10 minutes"),
    (720, "a dozen minutes", "12 minutes"),
    (900, "a quarter of an hour", "15 minutes"),
    (1500, "25 minutes", "twenty-five minutes"),
    (1800, "half an hour", "30 minutes"),
    (3600, "an hour", "one hour", "1 hour"),
)

GRAMS = (
    (50, "50 g", "fifty grams", "50 grams"),
    (100, "100 g", "a hundred grams", "100 grams"),
    (150, "150g", "150 grams"),
    (200, "200 g", "two hundred grams"),
    (250, "250 g", "a quarter of a kilo", "250 grams"),
    (300, "300 g", "0.3 kg"),
    (500, "half a kilo", "500 g", "0.5 kg", "500 grams"),
    (750, "750 grams", "three quarters of a kilo", "0.75 kg"),
    (1000, "a kilo", "1 kg", "one kilogram"),
    (1200, "1.2 kg", "1.2 kilos"),
    (1500, "1.5 kg", "one and a half kilos", "1.5 kilos"),
    (2000, "two kilos", "2 kg"),
    (2500, "2.5 kg", "two and a half kilos"),
    (3000, "3 kg", "three kilos"),
    (12000, "12 kg", "a dozen kilos"),
)
