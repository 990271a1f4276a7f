"""Parts of a task: words for operations, and the calls that serve them."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

from toolsrv_lab.conversations.episode import require
from toolsrv_lab.conversations.services_b.catalog import (
    Chain,
    Operation,
    Param,
    Phrase,
    Service,
    Slot,
    operations,
)
from toolsrv_lab.conversations.services_b.expressions import Helpers, record
from toolsrv_lab.conversations.services_b.values import Draw, pools
from toolsrv_lab.conversations.wording import enumerated


@dataclass(slots=True)
class Call:
    """A call in the making, with the first names of operation and parameters."""

    op: Operation
    arguments: dict[str, Any]
    said: dict[str, str]
    response: Any = None
    error: str = ""
    sentence: str = ""


@dataclass(slots=True)
class Need:
    """A part of the task as pieces (text, is it literal), and the calls that serve it."""

    pieces: list[tuple[str, bool]]
    calls: list[Call]
    tell: str = ""
    reason: str = ""
    text: str = ""


def nested(flat: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``{"a": {"b": 1}}`` for ``{"a.b": 1}``."""
    out: dict[str, Any] = {}
    for name, value in flat.items():
        into, *path = out, *name.split(".")
        for key in path[:-1]:
            into = into.setdefault(key, {})
        into[path[-1]] = value
    return out


def misspelt(rng: random.Random, word: str) -> str:
    """Return a word with one typing slip: letters swapped, dropped or doubled."""
    places = [
        at
        for at in range(1, len(word) - 2)
        if word[at : at + 2].isalpha() and word[at] != word[at + 1]
    ]
    if not places:
        return word
    at = rng.choice(places)
    return rng.choice(
        [
            word[:at] + word[at + 1] + word[at] + word[at + 2 :],
            word[:at] + word[at + 1 :],
            word[: at + 1] + word[at:],
        ]
    )


class NeedMaker:
    """Makes the parts of one episode's task, and their calls."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.now = date(2023, 1, 1) + timedelta(rng.randrange(365 * 9))
        self.draw = Draw(rng, self.now)
        self.names = Helpers(self.draw)
        self.lower = rng.random() < 0.2
        self.shared: dict[str, tuple[Any, str]] = {}

    # words

    def _fill(
        self, phrase: Phrase, params: Mapping[str, Param], many: int = 0, share: bool = True
    ) -> tuple[list[tuple[str, bool]], dict[str, Any], dict[str, str], str]:
        """Return pieces, values, words, and the parameter that has ``many`` values (lists in both)."""
        rng = self.rng
        values: dict[str, Any] = {}
        said: dict[str, str] = {}
        slots = {one.param: (one, at) for at, one in enumerate(phrase) if isinstance(one, Slot)}
        there: set[str] = set()
        spread = (
            next((one.param for one in phrase if isinstance(one, Slot) and one.many), "")
            if many
            else ""
        )
        for name in sorted(slots, key=list(params).index):
            slot, at = slots[name]
            param = params[name]
            before = phrase[at - 1] if at else ""
            if slot.value is not None:
                values[name], said[name] = slot.value, slot.said
                continue
            pool = (
                param.pool
                or f"pick({';'.join(f'{one}|' + one.replace('_', ' ').lower() for one in param.schema['enum'])})"
            )
            if name == spread:
                found = [self._one(pool, values, False) for _ in range(many)]
                values[name], said[name] = (
                    [one[0] for one in found],
                    "\n".join(one[1] for one in found),
                )
                continue
            last = at == len(phrase) - 1
            if (
                share
                and pool in self.shared
                and rng.random() < 0.6
                and pool in ("city", "country", "ticker", "person")
            ):
                values[name], said[name] = self.shared[pool]
                if (
                    isinstance(before, str)
                    and before.endswith(" in ")
                    and pool in ("city", "country")
                    and last
                ):
                    there.add(name)
                continue
            after_on = isinstance(before, str) and bool(re.search(r"\bon $", before))
            values[name], said[name] = self._one(pool, values, after_on)
            self.shared.setdefault(pool, (values[name], said[name]))
        pieces: list[tuple[str, bool]] = []
        for one in phrase:
            if isinstance(one, str):
                pieces.append((one, True))
                continue
            words = said[one.param]
            if one.param in there:
                pieces[-1] = (pieces[-1][0].removesuffix("in "), True)
                pieces.append(("there", True))
                continue
            if (
                re.match(
                    r"(today|tomorrow|yesterday|in (a|\w+) (week|day)s?|the day after|\d+ days ago)",
                    words,
                )
                and pieces
            ):
                pieces[-1] = (re.sub(r"\bon $", "", pieces[-1][0]), True)
            if one.param == spread:
                parts = words.split("\n")
                lead = rng.choice(["", "", "", "each of ", "both " if many == 2 else "all of "])
                if lead:
                    pieces.append((lead, True))
                words = enumerated(parts)
            pieces.append((words, False))
        return pieces, values, said, spread

    def _one(self, pool: str, values: Mapping[str, Any], after_on: bool) -> tuple[Any, str]:
        value, said = self.draw.value(pool, values, after_on)
        if (self.lower and pool in pools() and pools()[pool][0]) or (
            self.lower and pool.startswith("country")
        ):
            said = said.lower()
        return value, said

    # calls

    def _made(self, op: Operation, values: dict[str, Any], said: dict[str, str]) -> Call:
        call = Call(op, nested(values), dict(said))
        text = self.rng.choice(op.responses)
        told = self.names.value(text, a=record(call.arguments), s=record(said))
        call.response = json.loads(json.dumps(told, default=lambda one: one.fields))
        return call

    def _sentence(self, forms: Sequence[str], call: Call, **more: Any) -> str:
        """Return a form with its fields filled. Raise LookupError where none can be filled."""
        for form in self.rng.sample(forms, len(forms)):
            try:
                text = self.names.sentence(
                    form,
                    r=record(call.response),
                    a=record(call.arguments),
                    s=record(nested(call.said)),
                    **more,
                )
            except LookupError:
                continue
            if form.startswith("{s.") or (
                form.startswith("{") and re.match(r"[a-z]+(?:[ :,]|\.$)", text)
            ):
                text = text[0].upper() + text[1:]
            return text
        raise LookupError(f"{call.op.name}: no form can be told")

    def need(self, op: Operation, many: int = 0, fail: str = "") -> Need:
        """Return words for an operation and its calls. ``fail``: ``retry``, ``end`` or nothing."""
        groups = list(op.groups.values())
        pairs = [(one, phrase) for one in groups for phrase in one.phrases]
        if many:
            pairs = [
                pair for pair in pairs if any(isinstance(one, Slot) and one.many for one in pair[1])
            ]
        group, phrase = self.rng.choice(pairs)
        pieces, values, said, spread = self._fill(phrase, op.params, many, share=not many)
        if many:
            calls = []
            for value, words in zip(values[spread], said[spread].split("\n"), strict=True):
                call = self._made(op, {**values, spread: value}, {**said, spread: words})
                calls.append(call)
            for call, value in zip(calls, values[spread], strict=True):
                for _ in range(8):
                    call.sentence = self._sentence(group.sentences, call)
                    if str(value) in call.sentence or call.said[spread] in call.sentence:
                        break
            return Need(pieces, calls)
        call = self._made(op, values, said)
        if fail == "end":
            error, told = self.rng.choice(op.failures)
            call.response = None
            call.error = self.names.sentence(error, a=record(call.arguments), s=record(said))
            told = self.names.sentence(told, a=record(call.arguments), s=record(said))
            return Need(pieces, [call], tell=told)
        calls = [call]
        if fail == "retry":
            calls.insert(0, self._wrong(call, pieces))
        call.sentence = self._sentence(group.sentences, call)
        return Need(pieces, calls)

    def _wrong(self, call: Call, pieces: list[tuple[str, bool]]) -> Call:
        """Return a call whose error contains the right value. Raise LookupError where there is none."""
        rng, op = self.rng, call.op
        for name, error in rng.sample(op.corrections, len(op.corrections)):
            if name in call.said and call.arguments.get(name) not in (None, call.said[name]):
                wrong = Call(op, {**call.arguments, name: call.said[name]}, dict(call.said))
                wrong.error = self.names.sentence(error, v=call.arguments[name], w=call.said[name])
                return wrong
        for name, words in call.said.items():
            pool = op.params[name].pool
            named = (
                pool.startswith("country(name")
                or pool == "country"
                or (pool in pools() and pools()[pool][0])
            )
            if (
                named
                and isinstance(call.arguments.get(name), str)
                and call.arguments[name].lower() == words.lower()
                and len(words) > 4
            ):
                bad = misspelt(rng, words)
                if bad == words:
                    continue
                pieces[pieces.index((words, False))] = (bad, False)
                call.said[name] = bad
                wrong = Call(op, {**call.arguments, name: bad}, dict(call.said))
                right = call.arguments[name]
                shown = op.params[name].names[0]
                wrong.error = rng.choice(
                    [
                        f"{shown} '{bad}' not found. Did you mean '{right}'?",
                        f"Unknown {shown}: {bad}. Closest match: {right}",
                        f"404: nothing matches {shown}={bad!r}; suggestions: [{right!r}]",
                        f"invalid {shown} '{bad}', try '{right}'",
                        f"No result for '{bad}'. Similar: {right}.",
                    ]
                )
                return wrong
        raise LookupError("no mistake to make")

    def chain(self, chain: Chain) -> Need:
        """Return words that take several calls, each fed by the earlier ones."""
        ops = [operations()[name] for name, _ in chain.ops]
        params = {
            f"{at}.{name}": one for at, op in enumerate(ops, 1) for name, one in op.params.items()
        }
        phrase = self.rng.choice(chain.phrases)
        pieces, values, said, _ = self._fill(phrase, params)
        calls: list[Call] = []
        told: dict[str, Any] = {}
        for at, (op, (_, bound)) in enumerate(zip(ops, chain.ops, strict=True), 1):
            own = {
                name.partition(".")[2]: value
                for name, value in values.items()
                if name.startswith(f"{at}.")
            }
            words = {
                name.partition(".")[2]: value
                for name, value in said.items()
                if name.startswith(f"{at}.")
            }
            for name, text in bound.items():
                own[name] = self.names.value(text, **told)
                if own[name] is None:
                    raise LookupError(f"{chain.ops}: {text}")
            lacks = [name for name, one in op.params.items() if one.required and name not in own]
            require(
                not lacks,
                f"chain {[one for one, _ in chain.ops]}: {lacks} lack for {op.name} in {phrase}",
            )
            call = self._made(op, own, words)
            calls.append(call)
            told |= {
                f"r{at}": record(call.response),
                f"a{at}": record(call.arguments),
                f"s{at}": record(words),
            }
        calls[-1].sentence = self._sentence(chain.sentences, calls[-1], **told)
        return Need(pieces, calls)

    def lacking(self, service: Service) -> tuple[Need, str]:
        """Return words that no operation serves, and the name of an operation to leave out or nothing."""
        labelled = [one for one in service.ops if one.label and one.groups]
        if service.missing and (not labelled or self.rng.random() < 0.6):
            text, what = self.rng.choice(service.missing)
            pieces: list[tuple[str, bool]] = []
            at = 0
            for hit in re.finditer(r"\{~([^}]*)\}", text):
                before = text[at : hit.start()]
                pieces.append((before, True))
                words = self.draw.value(hit[1], {}, bool(re.search(r"\bon $", before)))[1]
                if re.match(r"(today|tomorrow|yesterday|in |the day after|\d+ days ago)", words):
                    pieces[-1] = (re.sub(r"\bon $", "", before), True)
                pieces.append((words, False))
                at = hit.end()
            pieces.append((text[at:], True))
            return Need([one for one in pieces if one[0]], [], reason=what), ""
        op = self.rng.choice(labelled)
        need = self.need(op)
        return Need(need.pieces, [], reason=op.label), op.name
