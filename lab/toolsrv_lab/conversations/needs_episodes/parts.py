"""Needs as parts of a task: drawn, with values and dates."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import replace
from datetime import date, timedelta

from toolsrv_lab.conversations.needs_episodes.catalog import (
    GROUP,
    Catalog,
    Part,
    missing_parameters,
)
from toolsrv_lab.conversations.needs_episodes.kinds import class_for
from toolsrv_lab.conversations.needs_episodes.tables import (
    ISO,
    class_of_word,
    sections,
    split_words,
)
from toolsrv_lab.instructions.written import MARK
from toolsrv_registry.api import Api, Parameter

SOURCE = "needs"
_CREDENTIAL = re.compile(r"key|creds|token|secret|password|socket|signature|auth", re.IGNORECASE)


class PartSource:
    """Draws needs and makes parts of a task of them. ``share``: which share of the needs (i, n)."""

    def __init__(self, catalog: Catalog, seed: int, share: tuple[int, int] = (0, 1)) -> None:
        self.share = share
        self.catalog = catalog
        self.seed = seed
        self.rng = random.Random(f"{SOURCE}/{seed}")
        self.queue: list[tuple[Api, str]] = []
        self.round = 0
        self.used: set[tuple[str, str]] = set()
        self.now = date(2025, 1, 1)

    def _fill_queue(self) -> None:
        rng = self.rng
        self.queue = [
            one
            for one in self.catalog.needs[self.share[0] :: self.share[1]]
            if (one[0].id, one[1]) not in self.used or self.round > 0
        ]
        self.round += 1
        rng.shuffle(self.queue)
        # Needs of the offline catalog are many and of few APIs: later rounds have half of them.
        if self.round > 1:
            self.queue = [
                one
                for one in self.queue
                if one[0].id not in self.catalog.is_offline or rng.random() < 0.4
            ]

    def take(self, fits: Callable[[Api], bool] | None = None) -> tuple[Api, str]:
        """Take a need off the queue, one whose API fits where possible."""
        if not self.queue:
            self._fill_queue()
        if fits is not None:
            for back in range(1, min(len(self.queue), 1500) + 1):
                if fits(self.queue[-back][0]):
                    return self.queue.pop(-back)
        return self.queue.pop()

    def part(self, api: Api, need: str) -> Part | None:
        """Return the need with values for all required parameters; None where there are none."""
        rng = self.rng
        values: dict[str, tuple[str, str]] = {}
        marks = list(MARK.finditer(need))
        names = [match[1] for match in marks]
        if len(set(names)) != len(names):
            return None
        fresh = self.round > 1 or rng.random() < 0.25
        swap = fresh and len(marks) == 1 and api.id not in self.catalog.is_offline
        swap = swap or (fresh and len(marks) == 1 and rng.random() < 0.5)

        def said(match: re.Match[str]) -> str:
            pair = (match[2], match[2] if match[3] is None else match[3])
            parameter = self.catalog.parameters[api.id][match[1]]
            if swap and not parameter.enum and len(pair[1]) < 60:
                pair = self._other(api, match[1], pair)
            values[match[1]] = pair
            return pair[1]

        text = MARK.sub(said, need)
        missing = missing_parameters(api, need)
        if len(missing) > 2 or any(_CREDENTIAL.search(one.name) for one in missing):
            return None
        for one in missing:
            value = self._made_up(one)
            if not value:
                return None
            values[one.name] = (value, value)
            label = " ".join(split_words(one.name))
            if label in {"id", "ids"}:
                shape = class_for(api, "")
                if shape and rng.random() < 0.6:
                    cue = min(shape.cues, key=lambda one: (len(one), one), default="")
                    label = f"{cue} id".strip()
                else:
                    label = "id"
            frame = rng.choice(sections("needs_frames.txt")["told"])
            added = (
                frame.replace("{l}", label).replace("{L}", label.capitalize()).replace("{v}", value)
            )
            end = re.search(r"[.?!]*$", text)
            mark = end[0] if end else ""
            text = text[: len(text) - len(mark)]
            text += (mark or ".") + added[1:] + "." if added.startswith(". ") else added + mark
        if any(not said_ or said_ not in text for _, said_ in values.values()):
            return None
        text = " ".join(text.split())
        if any(said_ not in text for _, said_ in values.values()):
            return None
        return self._dated(Part(api, text, values))

    def _other(self, api: Api, name: str, pair: tuple[str, str]) -> tuple[str, str]:
        rng = self.rng
        value, said = pair
        if (
            value == said
            and re.fullmatch(r"\d{3,}", value)
            and rng.random() < 0.7
            and not re.search(r"(?i)year|zip|season|days|amount|weight|price", name)
        ):
            first = rng.choice("123456789")
            return ((first + "".join(rng.choices("0123456789", k=len(value) - 1))),) * 2
        pool = self.catalog.own[api.id, name]
        if len({one[0] for one in pool}) < 4:
            return pair
        other = rng.choice(pool)
        return other if len(other[1]) < 80 else pair

    def _made_up(self, parameter: Parameter) -> str:
        rng = self.rng
        shown_ = str(parameter.default if parameter.default != "" else parameter.example or "")
        pool = [one for one in self.catalog.pool[parameter.name.lower()] if one[0] == one[1]]
        digits = re.fullmatch(r"\d{2,}", shown_) and re.search(
            r"(?i)id$|number|^ids?$", parameter.name
        )
        if digits:
            return rng.choice("123456789") + "".join(
                rng.choices("0123456789", k=max(1, len(shown_) + rng.randrange(-1, 2)) - 1)
            )
        if parameter.name.lower() in {"id", "type", "q", "query", "from", "to"} or len(pool) < 5:
            pool = [(shown_, shown_)] if 0 < len(shown_) < 40 else []
        value = rng.choice(pool)[0] if pool else ""
        return value if len(value) < 40 and value.isprintable() and "{" not in value else ""

    def _dated(self, part: Part) -> Part:
        """Return a need, at times with its one date relative to today."""
        rng = self.rng
        dated = [name for name, (value, _) in part.values.items() if ISO.fullmatch(value)]
        if len(dated) != 1 or rng.random() > 0.35:
            return part
        said = part.values[dated[0]][1]
        places = re.findall(rf"(?:\b(?:on|for|from|at) )?(?<!\w){re.escape(said)}(?!\w)", part.text)
        if len(places) != 1:
            return part
        past = (
            re.search(r"(?i)\b(?:was|were|did|histor\w*|past|had|since|won|born)\b", part.text)
            is not None
        )
        days = rng.choice((0, 1, 1, 2, 3, 5, 7)) * (-1 if past else 1)
        words: str
        if rng.random() < 0.3:
            at = rng.randrange(7)
            ahead = (at - self.now.weekday() - 1) % 7 + 1
            days = ahead - 7 if past and ahead < 7 else (ahead - 7 if past else ahead)
            days = days or (-7 if past else 7)
            weekday = (self.now + timedelta(days=days)).strftime("%A")
            words = f"last {weekday}" if past else f"next {weekday}"
        else:
            words = {
                0: "today",
                1: "tomorrow",
                -1: "yesterday",
                2: "the day after tomorrow",
                -2: "the day before yesterday",
                7: "in a week",
                -7: "a week ago",
            }.get(days, f"in {days} days" if days > 0 else f"{-days} days ago")
        prefix = places[0][: -len(said)]
        kept = "" if prefix.lower() in {"on ", "at "} else prefix
        if kept and words.startswith("in "):
            kept = ""
        text = part.text.replace(places[0], kept + words)
        if any(one not in text for name, (_, one) in part.values.items() if name != dated[0]):
            return part
        value = (self.now + timedelta(days=days)).isoformat()
        return replace(part, text=text, values={**part.values, dated[0]: (value, words)})

    def again(self, part: Part) -> Part | None:
        """Return the same need with another value of its one parameter."""
        if len(part.values) != 1 or (
            part.api.id in self.catalog.is_offline and self.rng.random() < 0.5
        ):
            return None
        name, (value, said) = next(iter(part.values.items()))
        pool = [
            one
            for one in self.catalog.own[part.api.id, name]
            if one[0] != value and len(one[1]) < 40
        ]
        if len(pool) < 3 or self.catalog.parameters[part.api.id][name].enum or ISO.fullmatch(value):
            return None
        other = self.rng.choice(pool)
        if other[1] == said:
            return None
        text = (
            self.rng.choice(sections("needs_frames.txt")["same"]).strip().replace("{b}", other[1])
        )
        return Part(part.api, text, {name: other}, "same")

    def chain(self, api: Api) -> Part | None:
        """Return a need of the same tool whose missing id is in the API's first result."""
        shape = class_for(api, "")
        if shape is None or api.id in self.catalog.is_offline:
            return None
        options = []
        for other in self.catalog.by_tool[api.id.rpartition("/")[0]]:
            if other.id == api.id:
                continue
            for need in self.catalog.of_api.get(other.id, ()):
                missing = missing_parameters(other, need)
                if (
                    len(missing) == 1
                    and re.search(r"(?i)id$", missing[0].name)
                    and not re.search(r"[.?!].", need)
                ):
                    words = [w for w in split_words(missing[0].name) if w != "id"] or split_words(
                        other.name
                    )
                    if any(class_of_word().get(w) is shape for w in words):
                        options.append((other, need, missing[0].name))
        if not options:
            return None
        other, need, key = self.rng.choice(options)
        values = {m[1]: (m[2], m[2] if m[3] is None else m[3]) for m in MARK.finditer(need)}
        self.used.add((other.id, need))
        return Part(
            other, MARK.sub(lambda m: m[2] if m[3] is None else m[3], need), values, "chain", key
        )

    def drawn(self, count: int) -> list[tuple[Api, str]]:
        """Draw so many needs, often of one tool or category."""
        rng = self.rng
        first = self.take()
        out = [first]
        way = rng.random()
        tool, category = first[0].id.rpartition("/")[0], first[0].category
        group = GROUP.get(category, 0)
        for _ in range(count - 1):
            if way < 0.3:
                out.append(self.take(lambda one: one.id.rpartition("/")[0] == tool))
            elif way < 0.6:
                out.append(self.take(lambda one: one.category == category))
            elif way < 0.85:
                out.append(self.take(lambda one: GROUP.get(one.category, 0) == group))
            else:
                out.append(self.take())
        return out
