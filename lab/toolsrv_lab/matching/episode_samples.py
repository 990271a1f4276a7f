"""Samples of episodes: functions under many names and descriptions, their tasks, calls and responses.

The catalogs that the other samples are about are learnt by heart: with the same functions in other
words a matcher of those alone finds half of what is needed. Episodes (``conversations.episode``)
bring functions that no catalog has. Seeded.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from toolsrv_lab.conversations.episode import Episode, HeldOutTasks, Made, Offered, read
from toolsrv_lab.matching.samples import Sample, Span, blurred, listed, span, whole
from toolsrv_registry.api import Api, Parameter
from toolsrv_registry.documents import content_hash
from toolsrv_runtime.values import facts

_CATEGORY = "Episodes"
_SEEN = 24
# So many clauses come again with their answer: nothing else is asked for then.
_ANSWERED = 0.15
# So many are kept of the episodes whose functions all are named as in a catalog.
_KNOWN = 0.5
# So many functions without a provider in their name get one, since catalogs always have one.
_PROVIDED = 0.6
# So many APIs a function is.
_VARIANTS = 2
_ENDINGS = ("", "api", "hub", "kit", "lab", "pro", "ify", "ly", "desk", "base", "service", "v2")
_EXAMPLE = re.compile(r" \(e\.g\. [^()]*\)$")
_TYPES = {"string": "STRING", "number": "NUMBER", "integer": "NUMBER", "boolean": "BOOLEAN",
          "array": "ARRAY", "object": "OBJECT"}  # fmt: skip


def drawn(
    file: Path, count: int, judged: HeldOutTasks, seed: int
) -> tuple[dict[str, Api], list[Sample]]:
    """Return about ``count`` samples of the episodes of a file, and their APIs by id.

    An episode gives at most two: of its whole task, and of a clause; all that it has where
    ``count`` is 0. Left out are those with a task of ``judged``.
    """
    rng = random.Random(f"{seed}/{file.stem}")
    episodes = list(read(file))
    rng.shuffle(episodes)
    apis: dict[str, Api] = {}
    samples: list[Sample] = []
    for episode in episodes:
        if count and len(samples) >= count:
            break
        if episode.task in judged:
            continue
        if all("_for_" in one.name for one in episode.functions) and rng.random() >= _KNOWN:
            continue
        known, some = episode_samples(episode, rng)
        apis |= known
        if not count:
            samples += some
            continue
        for kind in (True, False):
            same = [one for one in some if one.whole == kind]
            samples += rng.sample(same, min(1, len(same)))
    return apis, samples


def api_of(function: Offered, rng: random.Random) -> Api:
    """Return a function as an API of a catalog; its id is made of its content."""
    name, _, tool = function.name.rpartition("_for_")
    if not name:
        name, tool = function.name, _provider(function, rng) if rng.random() < _PROVIDED else ""
    schema = function.parameters
    must = set(schema.get("required", ()))
    told = {
        key: _parameter(key, value if isinstance(value, dict) else {})
        for key, value in schema.get("properties", {}).items()
    }
    api = Api(
        id="",
        category=_CATEGORY,
        tool=tool,
        name=name,
        description=function.description,
        required=tuple(one for key, one in told.items() if key in must),
        optional=tuple(one for key, one in told.items() if key not in must),
    )
    return api.model_copy(update={"id": f"{_CATEGORY}/{content_hash(api)[:20]}"})


def episode_samples(episode: Episode, rng: random.Random) -> tuple[dict[str, Api], list[Sample]]:
    """Return the functions of an episode as APIs by their ids, and the samples of its task."""
    apis = {one.name: api_of(one, _own(one, rng)) for one in episode.functions}
    samples = [
        *_steps(episode, apis, rng),
        *_whole_task(episode, apis),
        *_unserved(episode, apis, rng),
    ]
    # What no function serves teaches only beside one that does not.
    telling = [one for one in samples if one.api or one.others]
    return {api.id: api for api in apis.values()}, telling


def _own(function: Offered, rng: random.Random) -> random.Random:
    """Return a function's own chance: it is one of few APIs, in however many episodes it is."""
    variant = rng.randrange(_VARIANTS)
    told = f"{variant}/{function.name}/{function.description}/{sorted(function.parameters.items())}"
    return random.Random(told)


def _provider(function: Offered, rng: random.Random) -> str:
    """Return what a provider of a function might call itself."""
    said: list[str] = re.findall(r"[a-z]{4,}", function.description.lower())
    word = rng.choice(said or ["tool"])
    return word[: rng.randint(4, 8)] + rng.choice(_ENDINGS)


def _parameter(name: str, schema: Mapping[str, Any]) -> Parameter:
    kind = schema.get("type", "string")
    kind = (
        next((one for one in kind if one != "null"), "string") if isinstance(kind, list) else kind
    )
    return Parameter(
        name=name,
        type=_TYPES.get(kind, "STRING"),
        description=_EXAMPLE.sub("", str(schema.get("description", ""))),
        enum=tuple(one if isinstance(one, str) else str(one) for one in schema.get("enum", ())),
    )


def _others(
    apis: Mapping[str, Api], first: Sequence[str], without: Sequence[str]
) -> tuple[str, ...]:
    names = dict.fromkeys([*first, *apis])
    return tuple(apis[name].id for name in names if name not in without)


def _steps(episode: Episode, apis: Mapping[str, Api], rng: random.Random) -> Iterator[Sample]:
    seen: list[tuple[str, str]] = []
    used = [step.name for step in episode.steps]
    for step in episode.steps:
        begin = episode.task.find(step.words)
        clause = blurred(episode.task, (begin, begin + len(step.words)), rng)
        api = apis[step.name]
        yield Sample(
            text=episode.task,
            clause=clause,
            api=api.id,
            spans=_spans(step, api, episode.task, clause, seen),
            listed=_meant(step, api),
            facts=tuple(seen),
            others=_others(apis, [one for one in used if one != step.name], [step.name]),
        )
        if step.error:
            continue
        told = {n: text[: facts.VALUE_LIMIT] for n, text in facts.whole(step.response).items()}
        given = {str(value) for value in step.arguments.values()}
        news = [one for one in told.items() if one[1] not in given] or [*told.items()]
        seen = [*news, *seen][:_SEEN]
        if rng.random() < _ANSWERED and news and _is_alone(episode, step):
            yield Sample(
                text=episode.task, clause=clause, api="", facts=tuple(seen),
                others=_others(apis, (), used),
            )  # fmt: skip


def _is_alone(episode: Episode, step: Made) -> bool:
    """Whether no other call serves the same words: their answer leaves nothing open."""
    return sum(one.words in step.words or step.words in one.words for one in episode.steps) == 1


def _whole_task(episode: Episode, apis: Mapping[str, Api]) -> Iterator[Sample]:
    used = [step.name for step in episode.steps]
    if not used:
        ids = _others(apis, (), ())
        yield Sample(
            text=episode.task, clause=(0, len(episode.task)), api="", others=ids, whole=True
        )
        return
    for step in episode.steps:
        begin = episode.task.find(step.words)
        clause = (begin, begin + len(step.words))
        api = apis[step.name]
        spans = _spans(step, api, episode.task, clause, ())
        later = [n for n in step.arguments if n not in step.said and n not in spans]
        yield Sample(
            text=episode.task,
            clause=clause,
            api=api.id,
            spans=spans | {n: None for n in later if _comes_later(step, n)},
            listed=_meant(step, api),
            others=_others(apis, (), used),
            whole=True,
        )


def _unserved(episode: Episode, apis: Mapping[str, Api], rng: random.Random) -> Iterator[Sample]:
    for words in episode.unserved:
        begin = episode.task.find(words)
        clause = blurred(episode.task, (begin, begin + len(words)), rng)
        used = [step.name for step in episode.steps]
        yield Sample(text=episode.task, clause=clause, api="", others=_others(apis, used, ()))
    if not episode.steps:
        clause = (0, len(episode.task))
        yield Sample(text=episode.task, clause=clause, api="", others=_others(apis, (), ()))


def _comes_later(step: Made, name: str) -> bool:
    return not isinstance(step.arguments[name], (bool, list, dict)) and name not in step.said


def _meant(step: Made, api: Api) -> dict[str, str]:
    return listed(api, {name: str(value) for name, value in step.arguments.items()})


def _spans(
    step: Made, api: Api, task: str, clause: tuple[int, int], seen: Sequence[tuple[str, str]]
) -> dict[str, Span | None]:
    found: dict[str, Span | None] = {}
    for parameter in api.parameters:
        name = parameter.name
        if name not in step.arguments:
            found[name] = None
        elif name in step.said:
            place = span(task, step.said[name], clause)
            if place:
                found[name] = place
        elif not any(path.startswith(f"{name}.") for path in step.said):
            value = str(step.arguments[name])
            at = next((at for at, (_, fact) in enumerate(seen) if fact.strip() == value), None)
            if at is not None:
                found[name] = whole(at + 1, seen[at][1])
    return found
