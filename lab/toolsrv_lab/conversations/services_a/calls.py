"""Parts of a task: words with marks, the calls that serve them, their sentences."""

from __future__ import annotations

import datetime as dt
import json
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from toolsrv_lab.conversations.services_a.catalog import (
    Chain,
    Group,
    Operation,
    Param,
    parse_value,
    small_talk,
)
from toolsrv_lab.conversations.services_a.responses import (
    Call,
    Responder,
    Scope,
    evaluate,
    fill,
    joined,
    with_blank,
)
from toolsrv_lab.conversations.services_a.task import BEGIN, CLOSE, END, MID, OPEN, SEP
from toolsrv_lab.conversations.services_a.values import SLOT, Drawn, UnfitError, draw, lists

_CONST = re.compile(r"\[([^\[\]]*?)::(?:(\d)\.)?([\w.-]+)=([^\[\]]*?)\]")


def _filled(form: str, words: Mapping[str, str]) -> str:
    return SLOT.sub(lambda found: words[found[1]], form)


@dataclass(slots=True)
class Part:
    """One need: its words with marks, the calls that serve it, sentences of the answer."""

    text: str
    calls: list[Call]
    sentences: list[str]


class Maker:
    """Makes one episode."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.now = dt.date(2023, 1, 1) + dt.timedelta(rng.randrange(3286))
        self.segments = 0
        self.shared: dict[str, Drawn] = {}

    # -- slots

    def _draw(self, param: Param, pool: str, *, single: bool = False) -> Drawn:
        rng = self.rng
        if param.items:
            heard: list[str] = []
            values: list[Any] = []
            for _ in range(rng.choice((1, 2, 2, 3))):
                row: dict[str, Any] = {}
                words: dict[str, str] = {}
                for name, inner in param.items:
                    words[name], row[name] = draw(inner, rng, self.now)
                heard.append(_filled(param.form, words))
                values.append(row)
            return joined(heard, rng), values

        def one() -> Drawn:
            if param.words and not pool:
                return rng.choice(param.words)
            return draw(pool or param.pool, rng, self.now)

        if param.schema["type"] == "array" and not single:
            size = rng.choice((1, 1, 2, 2, 3))
            drawn: list[Drawn] = []
            for _ in range(size):
                taken = one()
                if taken[1] not in [value for _, value in drawn]:
                    drawn.append(taken)
            return joined([said for said, _ in drawn], rng), [value for _, value in drawn]
        said, value = one()
        if param.schema["type"] in ("integer", "number") and isinstance(value, str):
            value = json.loads(value)
        if param.schema["type"] == "string" and not isinstance(value, str):
            value = str(value)
        return said, [value] if param.schema["type"] == "array" else value

    def _render(self, phrase: str, ops: Sequence[Operation], scopes: Sequence[list[Scope]]) -> str:
        """Fill the slots of a phrase; ``scopes[i]`` has one scope for each call of step i."""
        count = max(len(one) for one in scopes)

        def mark(keys: list[str], said: str) -> str:
            return f"{OPEN}{';'.join(keys)}{SEP}{said}{CLOSE}"

        def constant(found: re.Match[str]) -> str:
            said, step, path, value = found.groups()
            index = int(step) - 1 if step else 0
            if path not in ops[index].params:
                raise ValueError(f"{path}: {phrase}")
            parsed = parse_value(value)
            kind = ops[index].params[path].schema["type"]
            if kind == "string":
                parsed = value
            if kind == "array" and not isinstance(parsed, list):
                parsed = [parsed]
            keys = []
            for number, scope in enumerate(scopes[index]):
                scope.arguments[path], scope.said[path] = parsed, said
                keys.append(f"{index}.{number}.{path}")
            return mark([*keys, "!"], said)

        def slot(found: re.Match[str]) -> str:
            text = found[1]
            step = re.match(r"^(\d)\.", text)
            index = int(step[1]) - 1 if step else 0
            if step:
                text = text[2:]
            if "&" in text:
                paths, pool = text.split("=")
                said, values = draw(pool, self.rng, self.now)
                keys = []
                for path, value in zip(paths.split("&"), values, strict=True):
                    if path not in ops[index].params:
                        raise ValueError(phrase)
                    for number, scope in enumerate(scopes[index]):
                        scope.arguments[path], scope.said[path] = value, said
                        keys.append(f"{index}.{number}.{path}")
                return mark(keys, said)
            path, _, pool = text.partition(":")
            many = path.endswith("+")
            path = path.rstrip("+")
            if path.startswith("_"):
                said, value = draw(pool, self.rng, self.now)
                for scope in scopes[index]:
                    scope.values[path] = value
                return mark([], said)
            if path not in ops[index].params:
                raise ValueError(f"{path}: {phrase}")
            param = ops[index].params[path]
            if many:
                drawn: list[Drawn] = []
                while len(drawn) < count:
                    one = self._draw(param, pool, single=True)
                    if one[0] not in [said for said, _ in drawn]:
                        drawn.append(one)
                pieces = []
                for number, (said, value) in enumerate(drawn):
                    scopes[index][number].arguments[path] = value
                    scopes[index][number].said[path] = said
                    pieces.append(mark([f"{index}.{number}.{path}"], said))
                return joined(pieces, self.rng)
            said, value = self._draw(param, pool)
            for scope in scopes[index]:
                scope.arguments[path], scope.said[path] = value, said
            return mark([f"{index}.{number}.{path}" for number in range(len(scopes[index]))], said)

        return SLOT.sub(slot, _CONST.sub(constant, phrase))

    def _segment(self, text: str) -> tuple[str, int]:
        self.segments += 1
        return f"{BEGIN}{self.segments}{MID}{text}{END}", self.segments

    def _respond(self, call: Call, count: str = "") -> None:
        maker = Responder(self.rng, self.now, call.scope, count)
        call.response = maker.make(self.rng.choice(call.op.responses))

    def _say(self, forms: Sequence[str], scopes: Sequence[Scope]) -> str:
        ways = list(forms)
        self.rng.shuffle(ways)
        for form in ways:
            try:
                return fill(form, scopes)
            except UnfitError:
                continue
        raise UnfitError(str(forms))

    def _complete(self, call: Call) -> bool:
        return all(
            path in call.scope.arguments for path, param in call.op.params.items() if param.required
        )

    # -- kinds of parts

    def plain(self, op: Operation) -> Part:
        """One call, or the same function for each of several things."""
        rng = self.rng
        group = rng.choices(
            op.groups, [len(one.phrases) + 2 * len(one.multis) for one in op.groups]
        )[0]
        many = bool(group.multis) and rng.random() < (0.2 if group.phrases else 1.0)
        phrase = rng.choice(group.multis if many else group.phrases)
        scopes = [Scope() for _ in range(rng.choice((2, 2, 3, 3, 4)) if many else 1)]
        text, segment = self._segment(self._render(phrase, [op], [scopes]))
        calls = [Call(op, scope, segment) for scope in scopes]
        for call in calls:
            if not self._complete(call):
                raise ValueError(f"{op.name}: {phrase}")
        if not many:
            return self._one(text, calls[0], group)
        for call in calls:
            self._respond(call)
        if group.grouped and rng.random() < 0.6:
            before, each, after = rng.choice(group.grouped).split("|")
            for call in calls:
                call.sentence = fill(before + each + after, [call.scope])
            told = [fill("{_}" + each, [with_blank(call.scope)]) for call in calls]
            ends = [fill("{_}" + one, [with_blank(calls[0].scope)]) for one in (before, after)]
            sentence = ends[0] + joined(told) + ends[1]
            return Part(text, calls, [sentence])
        form = rng.choice(group.answers)
        for call in calls:
            try:
                call.sentence = fill(form, [call.scope])
            except UnfitError:
                call.sentence = self._say(group.answers, [call.scope])
        told = [call.sentence for call in calls]
        if len(told) > 2 and rng.random() < 0.5:
            told = ["; ".join(one.removesuffix(".") for one in told) + "."]
        return Part(text, calls, told)

    def _one(self, text: str, call: Call, group: Group) -> Part:
        rng, op = self.rng, call.op
        chance = rng.random()
        if chance < 0.06:
            return self._failed(text, call)
        tries: list[Call] = []
        if op.fixes and chance < 0.26:
            path, fix, error = rng.choice(op.fixes)
            bad = call.scope.arguments.get(path)
            good = _fixed(fix, bad, rng) if isinstance(bad, str) else None
            if good is not None and good != bad:
                scope = Scope(dict(call.scope.arguments), dict(call.scope.said))
                told = error.replace("{bad}", str(bad)).replace("{good}", good)
                tries.append(Call(op, scope, call.segment, None, told))
                call.scope.arguments[path] = good
                del call.scope.said[path]
        elif chance > 0.985:
            scope = Scope(dict(call.scope.arguments), dict(call.scope.said))
            tries.append(Call(op, scope, call.segment, None, rng.choice(small_talk()["transient"])))
        empty = bool(group.empty) and rng.random() < 0.12
        self._respond(call, "0-0" if empty else "")
        call.sentence = self._say(group.empty if empty else group.answers, [call.scope])
        return Part(text, [*tries, call], [call.sentence])

    def _failed(self, text: str, call: Call) -> Part:
        rng, op = self.rng, call.op
        for error, answer in rng.sample(op.failures, len(op.failures)):
            try:
                call.error = fill(error, [call.scope])
                return Part(text, [call], [fill(answer, [call.scope])])
            except UnfitError:
                continue
        error, answer = rng.choice(small_talk()["failure"]).split(" => ")
        call.error = error
        gerund = op.gerund
        said = answer.replace("{n}", gerund).replace("{N}", gerund[0].upper() + gerund[1:])
        return Part(text, [call], [said])

    def chain(self, chain: Chain, operations: Mapping[str, Operation]) -> Part:
        """Calls of which a later one takes values from an earlier one's response."""
        rng = self.rng
        ops = [operations[name] for name in chain.operations]
        scopes = [Scope() for _ in ops]
        rendered = self._render(rng.choice(chain.phrases), ops, [[one] for one in scopes])
        pieces = rendered.split("||")
        text, numbers = "", []
        for piece in pieces:
            lead = len(piece) - len(piece.lstrip())
            marked, number = self._segment(piece[lead:])
            text += piece[:lead] + marked
            numbers.append(number)
        told_twice = [
            value for one in scopes for value in one.arguments.values() if isinstance(value, str)
        ]
        if len(told_twice) != len(set(told_twice)):
            raise UnfitError("one value for two things")
        last = len(ops) - 1
        calls: list[Call] = []
        for index, op in enumerate(ops):
            segment = numbers[min(index, len(numbers) - 1)]
            sources = [(path, what) for step, path, what in chain.maps if step == index + 1]
            if index == last and chain.repeated:
                calls += self._each(op, scopes, sources, segment)
                break
            for path, what in sources:
                wrap = what.startswith("[")
                value = evaluate(what.strip("[]"), scopes)
                scopes[index].arguments[path] = [value] if wrap else value
            call = Call(op, scopes[index], segment)
            if not self._complete(call):
                raise ValueError(f"chain {chain.operations}: {rendered}")
            self._respond(call, chain.counts.get(index + 1, ""))
            calls.append(call)
        forms = list(chain.answers)
        rng.shuffle(forms)
        for form in forms:
            try:
                told = [fill(one, scopes).strip() for one in form.split("||")]
            except UnfitError:
                continue
            if len(told) == 1:
                calls[-1].sentence = told[0]
            else:
                for call, one in zip(calls, told, strict=False):
                    call.sentence = one
            return Part(text, calls, [one for one in told if one])
        raise ValueError(f"no answer fits: {chain.operations}")

    def _each(
        self, op: Operation, scopes: list[Scope], sources: list[tuple[str, str]], segment: int
    ) -> list[Call]:
        calls = []
        lists = [(path, evaluate(what, scopes)) for path, what in sources]
        for row in range(len(lists[0][1])):
            scope = Scope(dict(scopes[-1].arguments), dict(scopes[-1].said))
            for path, values in lists:
                scope.arguments[path] = values[row] if isinstance(values, list) else values
            call = Call(op, scope, segment)
            if not self._complete(call):
                raise ValueError(f"chain {op.name}")
            self._respond(call)
            scopes[-1].values.update(scope.values)
            calls.append(call)
        return calls


def _fixed(fix: str, bad: str, rng: random.Random) -> str | None:
    if fix == "slug":
        return re.sub(r"[^\w]+", "-", bad.lower()).strip("-")
    if fix == "snake":
        return re.sub(r"[^\w]+", "_", bad.lower()).strip("_")
    if fix == "upper":
        return bad.upper()
    if fix == "lower":
        return bad.lower()
    if fix == "nospace":
        return ("+" if bad.startswith("+") else "") + re.sub(r"\D", "", bad)
    if fix == "digits":
        return re.sub(r"\D", "", bad)
    if fix == "env":
        return bad + rng.choice(("-eu", "-prod", "-2", "-v2", "-main", "-west", "-legacy"))
    if fix == "last":
        return f"{bad} {rng.choice(lists()['last'])}"
    if fix == "zulu":
        return bad + "Z"
    if fix == "team":
        return bad + rng.choice((" (old)", " 2", " EU", " North", " Team", " Ltd", " Group"))
    raise ValueError(fix)
