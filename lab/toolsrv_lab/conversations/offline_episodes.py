"""Errands over the offline catalog as episodes, with real calls and answers in sentences.

The calls are made, so the data are true. A share of the episodes shows every function under another
name with other parameters and another description (``data/offline_says_*.jsonl``), so that names are
not learnt by heart. The same files hold the sentences of the answers and further ways to ask.
"""

from __future__ import annotations

import json
import math
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from toolsrv_catalogs.offline import load_offline_catalog
from toolsrv_lab.conversations.episode import Episode, EpisodeError, Made, Offered, check
from toolsrv_lab.conversations.wording import fill
from toolsrv_lab.instructions.errands import Errand, ErrandStep, Value, errands, sources, swapped
from toolsrv_lab.nano.needs import Needs
from toolsrv_lab.nano.world import World
from toolsrv_registry.api import Api
from toolsrv_registry.functions import Function, FunctionList
from toolsrv_registry.words import words
from toolsrv_runtime.agent.prompts import tool_forms
from toolsrv_runtime.values import facts

_RENAMED, _SWAPPED, _FAILS = 0.45, 0.5, 0.04
_MISSING, _ALL_MISSING = 0.03, 0.08
"""Shares of the tasks of several parts, and of one, that lack a function."""
_FIELD = re.compile(r"\{([^{}=|]+)(?:=([^{}|]*)(?:\|([^{}]*))?)?\}")
_VALUE = re.compile(r"\{r\.([\w.]+)")
_JOINS = (
    "{a}. {b}", "{a} {b}", "{a}. Also, {b}", "{a}, and {b}", "{a} - and {b}", "{a}. And {b}",
    "{a}; {b}", "{a}. Then {b}", "two things: {a}. {b}", "{a}. While you are at it: {b}",
    "{a}. Oh, and {b}", "{a}\n{b}", "1) {a} 2) {b}", "First {a}. After that {b}", "{a} plus {b}",
    "{a}. One more thing, {b}", "Hi! {a}. {b} Thanks", "{a}? {b}?", "{a} & {b}", "{a}. Next, {b}",
)  # fmt: skip
_UNSERVED = (
    "No function here can {words}.", "For “{words}” there is no function.",
    "I found no function for “{words}”.", "What I cannot tell is “{words}”: no function serves it.",
    "“{words}” is not served by any function here.", "There is nothing here that answers “{words}”.",
)  # fmt: skip
_REASONS = (
    "no function for: {words}", "nothing here can tell {words}", "none of the functions serves “{words}”",
    "there is no function for this request", "the functions on offer are about other things",
    "a function for “{words}” is missing", "no function covers {words}",
)  # fmt: skip
_FAILURES = (
    "service unavailable", "HTTP status 503", "timeout", "rate limit exceeded", "internal server error",
)  # fmt: skip
_FAILED = (
    "{words}: the function failed ({error}).", "I could not find out “{words}”: {error}.",
    "“{words}” failed: {error}.", "The call for “{words}” failed ({error}).",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Says:
    others: Sequence[Mapping[str, Any]]
    says: Sequence[tuple[str, Sequence[str]]]
    asks: Sequence[Mapping[str, str]]


@cache
def _says() -> dict[str, _Says]:
    found = {}
    folder = files("toolsrv_lab.conversations") / "data"
    for part in "abc":
        file = folder / f"offline_says_{part}.jsonl"
        if not file.is_file():
            continue
        for line in file.read_text("utf-8").splitlines():
            told = json.loads(line)
            groups = [(one["when"], one["say"]) for one in told["says"]]
            found[told["api"]] = _Says(told["others"], groups, told.get("asks", ()))
    return found


class OfflineEpisodes:
    """See the module; ``world`` calls the APIs, ``now`` is the day on which it does (ISO)."""

    def __init__(self, world: World, now: str) -> None:
        self._world = world
        self._now = now
        self.refused: list[str] = []
        """Why episodes broke a rule and were left out."""
        self._apis = {api.id: api for api in load_offline_catalog().apis}
        self._functions = {one.api.id: one for one in FunctionList(list(self._apis.values()))}
        self._pools = Needs(self._apis.values()).pools
        self._bags = {
            key: set(words(f"{api.name} {api.description}")) for key, api in self._apis.items()
        }

    def episodes(self, seed: int, rounds: int) -> Iterator[Episode]:
        """Yield every errand ``rounds`` times with its own or other values, then the requests of the files."""
        rng = random.Random(seed)
        for turn in range(rounds):
            for errand in rng.sample(errands(), len(errands())):
                told = (
                    swapped(errand, self._pools, _SWAPPED, rng)
                    if turn or rng.random() < 0.4
                    else errand
                )
                one = self._episode(told, rng)
                if one is None and told is not errand:
                    one = self._episode(errand, rng)
                if one and self._is_sound(one):
                    yield one
            for errand in self._asked(rng):
                one = self._episode(errand, rng)
                if one and self._is_sound(one):
                    yield one

    def _is_sound(self, episode: Episode) -> bool:
        try:
            check(episode)
        except EpisodeError as error:
            self.refused.append(str(error))
            return False
        return True

    def _asked(self, rng: random.Random) -> Iterator[Errand]:
        """Yield the requests of the files, alone and two or three together."""
        told = (
            self._errand(key, one["text"], rng)
            for key, says in _says().items()
            for one in says.asks
            for _ in range(2)
            if key in self._apis and "now" not in one
        )
        single = [one for one in told if one is not None]
        rng.shuffle(single)
        yield from single
        for count in (2, 2, 3):
            for at in range(0, len(single) - count, count):
                chosen = single[at : at + count]
                rng.shuffle(chosen)
                joined = chosen[0]
                for other in chosen[1:]:
                    a = joined.task.rstrip(" .") if rng.random() < 0.8 else joined.task
                    task = rng.choice(_JOINS).format(a=a, b=other.task)
                    joined = Errand(task, (*joined.steps, *other.steps))
                steps = [step for step in joined.steps if step.words.rstrip(" .") in joined.task]
                if len(steps) == len(joined.steps):
                    yield joined
            rng.shuffle(single)

    def _errand(self, api: str, text: str, rng: random.Random) -> Errand | None:
        """Return an ask with values; None where one has no value and there is none to draw."""
        values: dict[str, Value] = {}

        def value_words(found: re.Match[str]) -> str:
            name = found[1].strip()
            if found[2] is None:
                pool = self._pools.get((api, name), ())
                values[name] = Value(*rng.choice(pool)) if pool else Value("", "")
            else:
                values[name] = Value(found[2], found[2] if found[3] is None else found[3])
            return values[name].said

        task = _FIELD.sub(value_words, text)
        if any(not one.said for one in values.values()):
            return None
        return Errand(task, (ErrandStep(task, api, values),))

    def _episode(self, errand: Errand, rng: random.Random) -> Episode | None:
        """Return the episode, None where a call is refused or a value is not in the words."""
        needed = [step.api for step in errand.steps if step.api]
        if any(one not in self._functions or one not in _says() for one in needed):
            return None
        missing = ""
        chained = any(value.key for step in errand.steps for value in step.arguments.values())
        lacks = rng.random() < (_MISSING if len(errand.steps) > 1 else _ALL_MISSING)
        if needed and lacks and not chained:
            missing = rng.choice(needed)
        shown = self._shown([one for one in needed if one != missing], needed, errand, rng)
        seen: list[facts.Fact] = []
        steps, said, unserved = [], [], []
        for step in errand.steps:
            if step.words not in errand.task:
                return None
            if not step.api or step.api == missing:
                unserved.append(step.words)
                said.append(rng.choice(_UNSERVED).format(words=_short(step.words)))
                continue
            made = self._made(step, shown[step.api], seen, errand.task, rng)
            if made is None:
                return None
            steps.append(made)
            if made.error:
                said.append(rng.choice(_FAILED).format(words=_short(step.words), error=made.error))
                if len(steps) < len(needed) and any(
                    value.key for other in errand.steps for value in other.arguments.values()
                ):
                    return None
                continue
            said.append(made.sentence)
            seen = [*facts.facts(made.response, limit=320), *seen]
        offered = [one[0] for one in shown.values()]
        rng.shuffle(offered)
        good = [one for one in steps if not one.error]
        reason = rng.choice(_REASONS).format(words=_short(errand.steps[0].words))
        return Episode(
            source="offline",
            now=self._now,
            task=errand.task,
            functions=offered,
            steps=steps or (),
            answer=_joined(said, rng) if good or steps else "",
            reason="" if steps else reason,
            unserved=unserved,
        )

    def _made(
        self,
        step: ErrandStep,
        shown: tuple[Offered, Mapping[str, str]],
        seen: Sequence[facts.Fact],
        task: str,
        rng: random.Random,
    ) -> Made | None:
        api, function = self._apis[step.api], self._functions[step.api]
        taken = sources(step.arguments, [name for name, _ in seen])
        values = {name: one.value for name, one in step.arguments.items() if not one.key}
        values |= {name: seen[at][1] for name, at in taken.items()}
        if len(values) < len(step.arguments):
            return None
        offered, keys = shown
        schema = tool_forms(function)[0].parameters["properties"]
        by_name = {parameter.name: key for key, parameter in function.parameters.items()}
        arguments, said = {}, {}
        for name, value in values.items():
            key = by_name.get(name)
            if key is None:
                return None
            cast = _cast(value, schema[key])
            if cast is None:
                return None
            arguments[keys[key]] = cast
            told = step.arguments[name]
            if not told.key:
                if told.said not in task and not api_enum(api, name):
                    return None
                if told.said in task:
                    said[keys[key]] = told.said
        if rng.random() < _FAILS:
            return Made(step.words, offered.name, arguments, said, None, rng.choice(_FAILURES))
        answer = self._world.call(api, values, rng)
        if answer.error:
            return None
        original = {
            key: _cast(values[p.name], schema[key])
            for key, p in function.parameters.items()
            if p.name in values
        }
        sentence = sentence_of(step.api, step.words, answer.response, original, rng)
        if not sentence:
            return None
        return Made(step.words, offered.name, arguments, said, answer.response, "", sentence)

    def _shown(
        self, offered: Sequence[str], needed: Sequence[str], errand: Errand, rng: random.Random
    ) -> dict[str, tuple[Offered, Mapping[str, str]]]:
        """Return API id -> the function as shown and old key -> shown key, with distractors."""
        wanted = rng.randrange(max(3 if offered else 6, len(set(offered))), 10)
        chosen = dict.fromkeys(offered)
        bag = set(words(errand.task)) | {w for one in needed for w in self._bags[one]}
        others = [one for one in self._apis if one not in needed]
        rng.shuffle(others)
        tools = {one.rsplit("/", 1)[0] for one in needed}
        near = sorted(
            others,
            key=lambda one: -len(self._bags[one] & bag) - 4 * (one.rsplit("/", 1)[0] in tools),
        )[:8]
        while len(chosen) < wanted:
            chosen.setdefault(
                rng.choice(near) if near and rng.random() < 0.7 else rng.choice(others)
            )
        renamed = rng.random() < _RENAMED
        found, names = {}, set()
        for one in chosen:
            shown = _renamed(self._functions[one], rng) if renamed else _plain(self._functions[one])
            if shown[0].name in names:
                shown = _plain(self._functions[one])
            names.add(shown[0].name)
            found[one] = shown
        return found


def sentence_of(
    api: str, asked: str, response: Any, arguments: Mapping[str, Any], rng: random.Random
) -> str:
    """Return the sentence of a response for a request, "" where no form fits."""
    for when, group in _says()[api].says:
        if when and not re.search(when, asked, re.IGNORECASE):
            continue
        for form in sorted(group, key=lambda one: _weight(one) * math.log(1 - rng.random()))[::-1]:
            try:
                text = fill(form, response, arguments)
            except (LookupError, ValueError, TypeError):
                continue
            if text and len(text) < 700:
                return text
    return ""


def _weight(form: str) -> float:
    """Return how seldom a form is to come first: one of more values is the likelier answer to all asked."""
    return 1 / max(1, len(set(_VALUE.findall(form)))) ** 2


def api_enum(api: Api, name: str) -> bool:
    """Whether a parameter has listed values."""
    return any(one.name == name and one.enum for one in api.parameters)


def _plain(function: Function) -> tuple[Offered, Mapping[str, str]]:
    shown = tool_forms(function)[0]
    return (
        Offered(shown.name, shown.description, shown.parameters),
        {key: key for key in shown.parameters["properties"]},
    )


def _renamed(function: Function, rng: random.Random) -> tuple[Offered, Mapping[str, str]]:
    says = _says().get(function.api.id)
    if says is None:
        return _plain(function)
    other = rng.choice(says.others)
    shown = tool_forms(function)[0].parameters
    by_old = other["parameters"]
    keys, properties = {}, {}
    for key, schema in shown["properties"].items():
        name, description = by_old.get(key, (key, schema.get("description", "")))
        keys[key] = name
        properties[name] = {**schema, "description": description}
    required = [keys[key] for key in shown["required"]]
    if len(set(keys.values())) < len(keys):
        return _plain(function)
    parameters = {"type": "object", "properties": properties, "required": required}
    return Offered(other["name"], other["description"], parameters), keys


def _cast(value: str, schema: Mapping[str, Any]) -> Any:
    """Return a value in its schema's type, None where it is not of it."""
    kind = schema.get("type")
    if kind in ("number", "integer"):
        try:
            number = float(value)
        except ValueError:
            return None
        return (
            int(number)
            if number.is_integer() and "." not in value and "e" not in value.lower()
            else number
        )
    if kind == "boolean":
        return {"true": True, "false": False}.get(value.lower())
    return value


def _joined(said: Sequence[str], rng: random.Random) -> str:
    kept = list(dict.fromkeys(one for one in said if one))
    if len(kept) == 2 and rng.random() < 0.25 and kept[1][:4] in ("The ", "It i", "Ther"):
        return f"{kept[0].rstrip('.')}, and {kept[1][0].lower()}{kept[1][1:]}"
    return ("\n" if any("\n" in one for one in kept) else " ").join(kept)


def _short(text: str) -> str:
    text = " ".join(text.split()).rstrip(" .?!")
    return text if len(text) <= 90 else text[:90].rsplit(" ", 1)[0] + "…"
