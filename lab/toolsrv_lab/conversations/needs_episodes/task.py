"""Text of a task composed of needs: parts drawn with values and dates, then joined."""

from __future__ import annotations

import random
import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from functools import cache

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
    join_patterns,
    sections,
    split_words,
)
from toolsrv_lab.conversations.wording import word_set
from toolsrv_lab.instructions.errands import MARK, written
from toolsrv_registry.api import Api, Parameter

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

        def value_words(match: re.Match[str]) -> str:
            pair = (match[2], match[2] if match[3] is None else match[3])
            parameter = self.catalog.parameters[api.id][match[1]]
            if swap and not parameter.enum and len(pair[1]) < 60:
                pair = self._other(api, match[1], pair)
            values[match[1]] = pair
            return pair[1]

        text = MARK.sub(value_words, need)
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
