"""Sentences that answer a need with fields of a response."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from toolsrv_lab.conversations.needs_episodes.kinds import LISTING
from toolsrv_lab.conversations.needs_episodes.schemas import (
    META,
    Response,
    leaves_of,
    lists_of,
    main_leaf,
    need_tokens,
    overlap,
    shown,
)
from toolsrv_lab.conversations.needs_episodes.tables import (
    class_of_word,
    label_of,
    sections,
    split_words,
    stem,
)


@dataclass
class Teller:
    """Answers a need in sentences. ``entity``: the name that the need is about, or empty."""

    rng: random.Random
    text: str
    entity: str
    about: str
    given: frozenset[str] = frozenset()

    def frame(self, kind: str) -> str:
        """Return a frame of a kind, one with the entity where there is one."""
        table = sections("needs_frames.txt")
        if self.entity and f"{kind}+entity" in table and self.rng.random() < 0.62:
            return self.rng.choice(table[f"{kind}+entity"])
        return self.rng.choice(table[kind])

    def fill(self, frame: str, **values: str) -> str:
        """Return a frame with its places filled, as a sentence."""
        values.setdefault("e", self.entity)
        for key in list(values):
            # Names and values keep their letters: only our own words are raised.
            raised = key in {"facts", "u", "noun", "clause", "topic", "f"}
            values[key[:1].upper() + key[1:]] = (
                values[key][:1].upper() + values[key][1:] if raised else values[key]
            )
        out = re.sub(r"\{(\w+)\}", lambda m: values.get(m[1], m[0]), frame)
        for word, article in (("a", "an"),):
            out = re.sub(rf"\b{word} (?=[aeiou]\w)", f"{article} ", out)
        out = re.sub(r"([.!?])\.(?=\s|$)", r"\1", out)
        if frame.startswith(("{noun}", "{f}", "{u}", "{facts}", "{topic}")) and not re.match(
            r"\S*[/@:.\d]", out
        ):
            out = out[:1].upper() + out[1:]
        return out

    def tell(self, answer: Response) -> str:
        """Return the answer that a response gives."""
        body = answer.body
        tokens = need_tokens(self.text)
        lists = [
            one
            for one in lists_of(body)
            if not one[1] or isinstance(one[1][0], (Mapping, str, int, float))
        ]
        records = [one for one in lists if one[1] and isinstance(one[1][0], Mapping)]
        leaves = [
            leaf
            for leaf in leaves_of(body)
            if leaf[1] not in (None, "")
            and not (
                len(leaf[0]) <= 2
                and leaf[0]
                and leaf[0][-1].lower() in META
                and answer.shape
                not in {"created", "deleted", "updated", "status", "match", "flight"}
            )
        ]
        told = self._special(answer, leaves)
        if told:
            return told
        scored = sorted(
            (
                (overlap(path, tokens), -at, path, value)
                for at, (path, value) in enumerate(leaves)
                if path
            ),
            key=lambda one: (-one[0], -one[1]),
        )
        top = [one for one in scored if one[0] > 0 and self._news(one[3])]
        wants_list = bool(LISTING.search(self.text)) or answer.shape == "list"
        plain = [one for one in lists if one[1] and not isinstance(one[1][0], Mapping)]
        if answer.shape == "list" and lists and not lists[0][1]:
            return self.fill(self.frame("empty"), noun=answer.noun or "results")
        if records and (wants_list or not top or len(records[0][1]) > 1):
            path, items = max(
                records,
                key=lambda one: (
                    len(one[1]) + 2 * sum(stem(w) in tokens for p in one[0] for w in split_words(p))
                ),
            )
            return self._items(items, path, answer, tokens)
        if plain and not records and (wants_list or not top):
            path, items = plain[0]
            noun = (
                label_of(path)[0]
                if path and path[-1].lower() not in {"data", "result", "results", "items", "list"}
                else answer.noun or "results"
            )
            return self._named([shown(one) for one in items], noun, len(items))
        if len([one for one in scored if self._news(one[3])]) >= 1:
            scored = [one for one in scored if self._news(one[3])]
        boolean = [one for one in scored if isinstance(one[3], bool)]
        asks = re.match(
            r"(?i)\s*(?:is|are|does|do|has|have|was|were|am|should)\b", self.text
        ) or re.search(r"(?i)\b(?:whether|is it|is this|is that|valid)\b|\bif\b.*\bis\b", self.text)
        if boolean and (asks or len(leaves) == 1):
            return self._yes_no(boolean[0][2], boolean[0][3])
        chosen = top[: self.rng.choice((1, 2, 3, 3))] if top else []
        if (
            chosen
            and chosen[0][0] >= 3
            and len(chosen) > 1
            and not re.search(r",| and |\bwith\b", self.text)
        ):
            chosen = [one for one in chosen if one[0] >= 3][:2]
        if not chosen:
            mains = [
                (1, 0, path, value)
                for path, value in leaves
                if path and path[-1] in answer.main and self._news(value)
            ]
            rest = [
                one
                for one in scored
                if self._news(one[3]) and not re.search(r"(?i)id$|url|hash|token", one[2][-1])
            ]
            chosen = (mains or rest or scored)[: self.rng.choice((1, 2, 3))]
        if not chosen:
            if leaves:
                return self.fill(
                    self.frame("single"), f="result", af="a result", v=shown(leaves[0][1])
                )
            return self.fill(self.frame("empty"), noun=answer.noun or "results")
        return self._facts([(path, value) for _, _, path, value in chosen])

    def _news(self, value: Any) -> bool:
        return (shown(value) != self.entity or not self.entity) and shown(value) not in self.given

    def _special(self, answer: Response, leaves: Sequence[tuple[tuple[str, ...], Any]]) -> str:
        last = {path[-1]: value for path, value in leaves if path}
        shape = answer.shape
        if shape == "count" and answer.main and answer.main[0] in last:
            number = shown(last[answer.main[0]])
            frames = [
                "There are {v} {noun}.",
                "{v} {noun}.",
                "It is {v} {noun}.",
                "I count {v} {noun}.",
                "The number is {v}.",
                "{v} in all.",
                "The count is {v}.",
                "The number of {noun} is {v}.",
            ]
            if self.entity:
                frames += [
                    "For {e} there are {v} {noun}.",
                    "For {e} the number is {v}.",
                    "{e}: {v} {noun}.",
                    "With {e} it is {v}.",
                ]
            return self.fill(self.rng.choice(frames), v=number, noun=answer.noun)
        if shape in {"created", "deleted", "updated"} and "status" in last:
            table = sections("needs_frames.txt")
            frame = self.rng.choice(
                table["done+id"] if "id" in last and self.rng.random() < 0.6 else table["done"]
            )
            return self.fill(frame, v=shown(last["status"]), id=shown(last.get("id", "")))
        if shape in {"image", "download", "link"} and "url" in last:
            noun = {"image": "image", "download": "file", "link": "link"}[shape]
            return self.fill(self.frame("link"), noun=noun, v=shown(last["url"]))
        if shape in {"joke", "fact", "generated", "summary"}:
            for key in ("joke", "fact", "text", "summary"):
                if key in last:
                    return self.rng.choice(sections("needs_frames.txt")["text"]).replace(
                        "{v}", shown(last[key])
                    )
        if shape == "quote" and "quote" in last and "author" in last:
            return self.fill(
                self.rng.choice(sections("needs_frames.txt")["text+author"]),
                v=shown(last["quote"]),
                a=shown(last["author"]),
            )
        if (
            shape == "match"
            and {"home_team", "away_team", "home_score", "away_score"} <= last.keys()
        ):
            home, away, one, two = (
                shown(last[k]) for k in ("home_team", "away_team", "home_score", "away_score")
            )
            return self.rng.choice(
                (
                    f"{home} {one}, {away} {two}.",
                    f"It is {one}-{two} between {home} and {away}.",
                    f"{home} and {away}: {one}-{two}.",
                    f"The score of {home} against {away} is {one} to {two}.",
                )
            )
        return ""

    def _yes_no(self, path: tuple[str, ...], value: bool) -> str:
        label, _ = label_of(path)
        has = split_words(path[-1])[0] == "has"
        subject = self.entity or "it"
        if has:
            clause = f"{subject} has {'a' if value else 'no'} {label}"
        elif label in {
            "proxy",
            "spam",
            "bot",
            "holiday",
            "match",
            "prime",
            "palindrome",
            "anagram",
            "leap",
            "leap year",
        } or re.search(
            r"(?:account|user|page|member|channel|address|number|day|year|word)$", label
        ):
            clause = f"{subject} is {'a' if value else 'not a'} {label}"
        else:
            clause = f"{subject} is {'' if value else 'not '}{label}"
        frames = [
            one
            for one in sections("needs_frames.txt")["yes" if value else "no"]
            if "{clause}" in one
        ]
        return self.fill(self.rng.choice(frames), clause=clause)

    def _facts(self, facts: Sequence[tuple[tuple[str, ...], Any]]) -> str:
        if len(facts) == 1:
            path, value = facts[0]
            if isinstance(value, bool):
                return self._yes_no(path, value)
            label, unit = label_of(path)
            if label in {"url", "link"}:
                return self.fill(
                    self.frame("link"),
                    noun=self.about if self.rng.random() < 0.3 else "link",
                    v=shown(value),
                )
            frame = self.frame("single")
            while not overlap(path, need_tokens(self.text)) and not re.search(r"\{a?f\}", frame):
                frame = self.frame("single")
            if label in {
                "name",
                "title",
                "text",
                "result",
                "value",
                "item",
                "full name",
                "label",
                "data",
                "answer",
            } or (label.endswith((" name", " result")) and self.rng.random() < 0.5):
                frame = self.rng.choice(
                    (
                        "It is {v}.",
                        "{v}.",
                        "That is {v}.",
                        "{v}, it says.",
                        "You get {v}.",
                        "The answer is {v}.",
                        "It comes out as {v}.",
                        "I get {v}.",
                        "The result is {v}.",
                    )
                )
                if self.entity and self.rng.random() < 0.5:
                    frame = self.rng.choice(
                        (
                            "For {e} it is {v}.",
                            "{e}: {v}.",
                            "With {e} it is {v}.",
                            "For {e}, I get {v}.",
                            "{e} gives {v}.",
                        )
                    )
            if len(shown(value)) > 70:
                frame = self.rng.choice(
                    (
                        "The {f}: {v}",
                        "The {f} reads: {v}",
                        "It says: {v}",
                        "{v}",
                        "Under {f} it says: {v}",
                    )
                )
            return self.fill(frame, f=label, af=f"a {label}", v=shown(value) + unit)
        parts = []
        style = self.rng.random()
        for path, value in facts:
            label, unit = label_of(path)
            if isinstance(value, bool):
                parts.append(
                    f"it is {'' if value else 'not '}{label}"
                    if split_words(path[-1])[0] != "has"
                    else f"it has {'a' if value else 'no'} {label}"
                )
            elif style < 0.6:
                parts.append(f"the {label} is {shown(value)}{unit}")
            else:
                parts.append(f"{label} {shown(value)}{unit}")
        return self.fill(self.frame("record"), facts=enumerated(parts, self.rng))

    def _items(
        self, items: Sequence[Any], path: tuple[str, ...], answer: Response, tokens: frozenset[str]
    ) -> str:
        if len(items) == 1 and isinstance(items[0], Mapping) and not LISTING.search(self.text):
            leaves = leaves_of(items[0])
            top = [
                one
                for one in leaves
                if one[0]
                and overlap(one[0], tokens)
                and one[1] not in (None, "")
                and self._news(one[1])
            ]
            if top:
                return self._facts(top[:3])
        noun = answer.noun
        if answer.shape == "schema" or not noun:
            last = label_of(path)[0] if path else ""
            vague = not last or last in {
                "data",
                "results",
                "result",
                "items",
                "item",
                "list",
                "response",
                "docs",
                "hits",
                "records",
            }
            noun = (
                (noun or "results")
                if vague
                else (last if last.endswith("s") and len(last) < 25 else "entries")
            )
            for word in (w for p in reversed(path) for w in reversed(split_words(p))):
                if word in class_of_word():
                    noun = class_of_word()[word].noun
                    break
        names: list[str] = []
        extra: tuple[str, ...] | None = None
        for one in items[:5]:
            leaves = [leaf for leaf in leaves_of(one) if leaf[1] not in (None, "")]
            pair = self._versus(leaves)
            main = main_leaf(leaves, answer.main)
            if main is None and not pair:
                continue
            name = pair or shown(main[1]) if main else pair
            if extra is None:
                others = [
                    leaf
                    for leaf in leaves
                    if (main is None or leaf[0] != main[0])
                    and not isinstance(leaf[1], bool)
                    and len(shown(leaf[1])) < 60
                ]
                if not re.search(
                    r"(?i)\b(?:slugs?|links?|urls?|ids?|identifiers?|images?|pictures?|photos?|covers?)\b",
                    self.text,
                ):
                    others = [
                        leaf
                        for leaf in others
                        if not re.search(
                            r"(?i)slug|url|uri|link|image|logo|(?:^|_|[a-z])id$", leaf[0][-1]
                        )
                    ]
                fits = [
                    leaf[0] for leaf in others if overlap(leaf[0], tokens) and self._news(leaf[1])
                ]
                if (
                    not fits
                    and main is not None
                    and re.match(r"\d{4}-\d\d|\d{9,}$", shown(main[1]))
                ):
                    fits = [
                        leaf[0]
                        for leaf in others
                        if re.fullmatch(r"-?\d+(?:\.\d+)?", shown(leaf[1]))
                        and not re.search(r"(?i)id$", leaf[0][-1])
                    ]
                if pair:
                    fits = [p for p in fits if not re.search(r"(?i)home|away", p[0])]
                extra = fits[0] if fits else ()
            if extra:
                value = dict(leaves).get(extra)
                if value is not None:
                    label, unit = label_of(extra)
                    clear = (
                        not re.fullmatch(r"-?[\d.]+", shown(value))
                        or label in {"year", "odds"}
                        or unit
                    )
                    bare = self.rng.random() < (0.8 if clear else 0.1)
                    name += (
                        f" ({shown(value)}{unit})" if bare else f" ({label} {shown(value)}{unit})"
                    )
            names.append(name)
        if not names:
            return self.fill(
                self.frame("single"),
                f="number of results",
                af="a number of results",
                v=str(len(items)),
            )
        return self._named(names, noun or "results", len(items))

    def _versus(self, leaves: Sequence[tuple[tuple[str, ...], Any]]) -> str:
        found: dict[str, str] = {}
        for path, value in leaves:
            words = "".join(w for p in path for w in split_words(p))
            if isinstance(value, str) and re.fullmatch(r"(home|away)(team)?(name|title)?", words):
                found.setdefault(words[:4], value)
        return f"{found['home']} vs {found['away']}" if len(found) == 2 else ""

    def _named(self, names: Sequence[str], noun: str, count: int) -> str:
        kept = list(dict.fromkeys(names))[:5]
        if count == 1:
            return self.fill(self.frame("one"), items=kept[0], noun=noun)
        kind = "list" if len(kept) == count else "listcut"
        return self.fill(
            self.frame(kind), n=str(count), noun=noun, items=enumerated(kept, self.rng)
        )


def enumerated(parts: Sequence[str], rng: random.Random) -> str:
    """Return a list in words."""
    if len(parts) < 2:
        return "".join(parts)
    if any("," in one for one in parts):
        return "; ".join(parts)
    last = rng.choice((" and ", " and ", ", and "))
    return ", ".join(parts[:-1]) + last + parts[-1]
