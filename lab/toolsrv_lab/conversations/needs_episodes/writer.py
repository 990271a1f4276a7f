"""Episodes out of needs: tasks, calls, responses, answers."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime, timedelta
from typing import Any

from toolsrv_lab.conversations.episode import Episode, Made, Offered
from toolsrv_lab.conversations.needs_episodes.catalog import (
    Catalog,
    Part,
)
from toolsrv_lab.conversations.needs_episodes.offline import offline_sentence
from toolsrv_lab.conversations.needs_episodes.renaming import View, renamed, typed
from toolsrv_lab.conversations.needs_episodes.responses import invent
from toolsrv_lab.conversations.needs_episodes.schemas import Response, lists_of, need_tokens
from toolsrv_lab.conversations.needs_episodes.sentences import Teller
from toolsrv_lab.conversations.needs_episodes.tables import (
    ISO,
    PAGING,
    sections,
    split_words,
    table,
    topic,
)
from toolsrv_lab.conversations.needs_episodes.task import SOURCE, PartSource, compose
from toolsrv_lab.conversations.needs_episodes.values import Inventor
from toolsrv_lab.nano.world import World
from toolsrv_registry.api import Api
from toolsrv_registry.functions import FunctionList
from toolsrv_runtime.agent.prompts import tool_forms

_TODAY = frozenset({"current_time", "next_holiday", "calculate_age", "time_difference", "convert_time", "time_zone_details", "moon_phase", "sunrise_and_sunset", "day_length", "golden_hour"})  # fmt: skip


class Writer(PartSource):
    """Writes episodes. ``world`` calls the APIs of the offline catalog."""

    def __init__(
        self, catalog: Catalog, world: World, seed: int, share: tuple[int, int] = (0, 1)
    ) -> None:
        super().__init__(catalog, seed, share)
        self.world = world
        self.dropped = 0
        self.refused: list[str] = []

    def write_one(self) -> Episode | None:
        """Return an episode, or None where the needs drawn do not make one."""
        rng = self.rng
        self.now = date(2023, 1, 3) + timedelta(days=rng.randrange(365 * 5))
        if rng.random() < 1 / 12:
            return self._unfit()
        count = rng.choices((1, 2, 3, 4), (40, 35, 18, 7))[0]
        drawn = self.drawn(count)
        if not drawn:
            return None
        if any(api.name in _TODAY or api.id.rpartition("/")[2] in _TODAY for api, _ in drawn):
            self.now = datetime.now().astimezone().date()
        parts: list[Part] = []
        for api, need in drawn:
            part = self.part(api, need)
            if part is None:
                self.dropped += 1
                continue
            parts.append(part)
            self.used.add((api.id, need))
        if not parts:
            return None
        if len(parts) <= 2 and count > 1 and rng.random() < 0.12:
            for _ in range(rng.choice((1, 1, 2))):
                again = self.again(parts[-1])
                if again and again.text not in {one.text for one in parts}:
                    parts.append(again)
        elif len(parts) <= 2 and rng.random() < 0.7:
            chained = self.chain(parts[-1].api)
            if chained:
                parts.append(chained)
        barred: set[str] = set()
        if rng.random() < 1 / 30 and len([p for p in parts if p.kind == "need"]) < 4:
            api, need = self.take(lambda one: one.category != parts[0].api.category)
            extra = self.part(api, need)
            if extra:
                self.used.add((api.id, need))
                extra = replace(extra, kind="unserved")
                at = rng.choice((0, len(parts)))
                parts.insert(at, extra)
                barred = (
                    {api.id}
                    | self.catalog.same_purpose(api)
                    | {one.id for one in self.catalog.by_tool[api.id.rpartition("/")[0]]}
                )
                if any(part.api.id in barred for part in parts if part.kind != "unserved"):
                    return None
        return self._served(parts, barred)

    def _views(
        self, apis: Sequence[Api], twins: Sequence[Api]
    ) -> tuple[dict[str, View], dict[str, View]]:
        """Return the functions on offer by API, and other providers' functions of the same purpose."""
        rng = self.rng
        views: dict[str, View] = {}
        short = rng.random() < 0.2
        total = 0
        tools = []
        for function in FunctionList(apis):
            whole, brief, bare = tool_forms(function)
            tool = brief if short else whole
            if len(json.dumps(whole.parameters)) > 3000:
                tool = brief
            if len(json.dumps(tool.parameters)) > 2500:
                tool = bare
            total += len(json.dumps(tool.parameters))
            tools.append((function, tool, brief))
        for function, tool, brief in tools:
            chosen = brief if total > 9000 else tool
            description = chosen.description
            keys = {parameter.name: key for key, parameter in function.parameters.items()}
            views[function.api.id] = View(
                Offered(chosen.name, description, chosen.parameters), keys
            )
        taken = {view.offered.name for view in views.values()}
        if rng.random() < 1 / 3:
            style = rng.choice(
                ("camel", "camel", "snake", "snake", "snake", "pascal", "kebab", "flat")
            )
            for api in apis:
                if rng.random() < 0.9:
                    views[api.id] = renamed(views[api.id], api, style, rng, taken)
                    taken.add(views[api.id].offered.name)
        other: dict[str, View] = {}
        for api in twins:
            other[api.id] = renamed(
                views[api.id], api, rng.choice(("camel", "snake", "snake")), rng, taken
            )
            taken.add(other[api.id].offered.name)
        return views, other

    def _served(self, parts: Sequence[Part], barred: set[str]) -> Episode | None:
        rng = self.rng
        served = [part for part in parts if part.kind != "unserved"]
        needed = list({part.api.id: part.api for part in served}.values())
        failing = [
            rng.random() < 0.08 and part.api.id not in self.catalog.is_offline for part in parts
        ]
        for at, part in enumerate(parts):
            follows = at + 1 < len(parts) and parts[at + 1].kind == "chain"
            if part.kind in {"chain", "unserved"} or follows:
                failing[at] = False
        twins = list(
            {
                p.api.id: p.api
                for p, fails in zip(parts, failing, strict=True)
                if fails and rng.random() < 0.5
            }.values()
        )
        total = rng.randrange(max(3, len(needed) + 1), 10)
        apis = [*needed]
        closed = barred | {api.id for api in needed}
        for api in needed:
            closed |= self.catalog.same_purpose(api)
        share = max(1, -(-(total - len(needed) - len(twins)) // len(needed)))
        for api in needed:
            for one in self.catalog.near(api, share, rng, closed):
                if len(apis) + len(twins) < total and one not in apis:
                    apis.append(one)
        rng.shuffle(apis)
        views, other = self._views(apis, twins)
        offered = [view.offered for view in (*views.values(), *other.values())]
        if len({one.name for one in offered}) != len(offered):
            return None
        rng.shuffle(offered)
        draft = compose(parts, rng)
        steps: list[Made] = []
        sentences: list[str] = []
        unserved: list[str] = []
        first_id: Any = None
        for at, part in enumerate(parts):
            begin, end = draft.spans[at]
            words = draft.task[begin:end].strip()
            if not words:
                return None
            if part.kind == "unserved":
                unserved.append(words)
                sentences.append(self._unserved(part))
                continue
            view = views[part.api.id]
            arguments, said = self._arguments(part, view, first_id)
            if arguments is None:
                return None
            chained = at + 1 < len(parts) and parts[at + 1].kind == "chain"
            if failing[at]:
                made, told = self._failed(
                    part, view, other.get(part.api.id), words, arguments, said
                )
                steps += made
                sentences.append(told)
                continue
            answer = self._response(part, arguments, view, with_id=chained)
            if answer is None:
                return None
            if chained:
                first_id = _first_id(answer.body)
                if first_id is None:
                    return None
            sentence = self._teller(part).tell(answer)
            if part.api.id in self.catalog.is_offline:
                back = {key: name for name, key in view.keys.items()}
                plain = {back[key]: value for key, value in arguments.items()}
                sentence = offline_sentence(part, plain, answer.body, rng) or sentence
            steps.append(Made(words, view.offered.name, arguments, said, answer.body, "", sentence))
            sentences.append(sentence)
        if any(not one for one in sentences) or any(len(one) > 700 for one in sentences):
            return None
        return Episode(
            SOURCE,
            self.now.isoformat(),
            draft.task,
            tuple(offered),
            tuple(steps),
            self._answer(sentences),
            "",
            tuple(unserved),
        )

    def _arguments(
        self, part: Part, view: View, first_id: Any
    ) -> tuple[dict[str, Any] | None, dict[str, str]]:
        properties = view.offered.parameters["properties"]
        arguments: dict[str, Any] = {}
        said: dict[str, str] = {}
        for name, (value, words) in part.values.items():
            key = view.keys.get(name)
            if key is None or key not in properties:
                return None, {}
            told = typed(value, properties[key])
            if told is None or told == "":
                return None, {}
            arguments[key] = told
            said[key] = words
        if part.chained:
            key = view.keys[part.chained]
            told = typed(str(first_id), properties[key])
            if told is None:
                return None, {}
            arguments[key] = told
        if not set(view.offered.parameters["required"]) <= arguments.keys():
            return None, {}
        order = [key for key in properties if key in arguments]
        return {key: arguments[key] for key in order}, {
            key: said[key] for key in order if key in said
        }

    def _response(
        self, part: Part, arguments: Mapping[str, Any], view: View, *, with_id: bool
    ) -> Response | None:
        api = part.api
        if api.id in self.catalog.is_offline:
            back = {key: name for name, key in view.keys.items()}
            answer = self.world.call(
                api,
                {
                    back[k]: v if not isinstance(v, bool) else str(v).lower()
                    for k, v in arguments.items()
                },
                self.rng,
            )
            if answer.error or len(json.dumps(answer.response, ensure_ascii=False)) > 1500:
                return None
            return Response(answer.response)
        back = {key: name for name, key in view.keys.items()}
        own = {back.get(key, key): value for key, value in arguments.items()}
        inventor = Inventor(self.rng, self.now)
        plain_text = self._bare(part)
        response = invent(
            api, plain_text, self.catalog.schemas.get(api.id), own, inventor, with_id=with_id
        )
        return response if response.body else None

    def _bare(self, part: Part) -> str:
        """Return the words of a need without its values."""
        text = part.text
        for _, said in part.values.values():
            if len(said) > 2:
                text = text.replace(said, " ")
        return text if len(text.split()) > 1 else part.text

    def _entity(self, part: Part) -> str:
        for name, (value, said) in part.values.items():
            key = PAGING.search(name)
            if (
                key
                or len(value) > 40
                or "\n" in value
                or value.count(",") > 1
                or ISO.fullmatch(value)
            ):
                continue
            words = split_words(name)
            if re.fullmatch(r"[0-9.,+-]+", value):
                if (
                    re.search(r"[A-Za-z]{3}", said)
                    and len(said) < 30
                    and words[-1:] == ["id"]
                    and said[:1].isupper()
                ):
                    return said
                if words[-1:] == ["id"] or words == ["id"] or name.lower().endswith("id"):
                    label = " ".join(words[:-1]) if len(words) > 1 else ""
                    label = label or ("id" if words == ["id"] else name[:-2].lower())
                    return f"{label} {value}".strip() if value in part.text else ""
                continue
            if (
                said != value
                and len(said) <= 40
                and (said[:1].isupper() or len(value) < 4)
                and len(said.split()) < 4
            ):
                return said
            if value.lower() in {"true", "false", "yes", "no"}:
                continue
            if len(said.split()) < 6 and said == value:
                return said
            if len(said.split()) < 5:
                return said
        return ""

    def _teller(self, part: Part) -> Teller:
        given = frozenset(text for pair in part.values.values() for text in pair)
        return Teller(self.rng, self._bare(part), self._entity(part), topic(part.api), given)

    def _unserved(self, part: Part) -> str:
        teller = self._teller(part)
        return teller.fill(
            self.rng.choice(sections("needs_frames.txt")["unserved"]), u=self._what(part)
        )

    def _what(self, part: Part) -> str:
        """Return the object of a need, as a phrase."""
        entity = self._entity(part)
        phrase = f"the {topic(part.api)}"
        return f"{phrase} for {entity}" if entity and self.rng.random() < 0.6 else phrase

    def _failed(
        self,
        part: Part,
        view: View,
        twin: View | None,
        words: str,
        arguments: Mapping[str, Any],
        said: Mapping[str, str],
    ) -> tuple[list[Made], str]:
        """Return the calls of a need whose first one fails, and the sentence about it."""
        rng = self.rng
        error = rng.choice(table("needs_errors.txt"))
        body: Any = rng.choice(
            (
                {"message": error},
                {"error": error},
                {"error": error, "response": ""},
                {"success": False, "message": error},
            )
        )
        made = [Made(words, view.offered.name, arguments, said, body, error, "")]
        teller = self._teller(part)
        if twin is not None:
            again, told = self._arguments(part, twin, None)
            answer = (
                self._response(part, arguments, view, with_id=False) if again is not None else None
            )
            if again is not None and answer is not None:
                sentence = teller.tell(answer)
                made.append(Made(words, twin.offered.name, again, told, answer.body, "", sentence))
                extra = (
                    rng.choice(sections("needs_frames.txt")["retry"]).replace("{err}", error)
                    if rng.random() < 0.25
                    else ""
                )
                return made, f"{sentence} {extra}".strip()
        return made, teller.fill(
            teller.frame("error"), topic=topic(part.api), err=error.rstrip(".")
        )

    def _answer(self, sentences: Sequence[str]) -> str:
        rng = self.rng
        way = rng.random()
        links = [re.search(r"https?://\S+$", one) is not None for one in sentences]
        sentences = [
            one if link or re.search(r"[.!?…]['\"”)]?$", one) else f"{one}."
            for one, link in zip(sentences, links, strict=True)
        ]
        if any(links[:-1]):
            return "\n".join(sentences)
        if len(sentences) > 1 and way < 0.15:
            return "\n".join(sentences)
        if len(sentences) == 2 and way < 0.35 and sentences[0].endswith("."):
            return f"{sentences[0][:-1]}{rng.choice(('; ', ', and ', ' - '))}{_eased(sentences[1])}"
        if len(sentences) > 1 and way < 0.5:
            if _eased(sentences[-1]) == sentences[-1]:
                return " ".join(sentences)
            last = f"{rng.choice(('Also, ', 'And ', 'Besides, ', 'Then, ', 'As for the rest, '))}{_eased(sentences[-1])}"
            return " ".join((*sentences[:-1], last))
        return " ".join(sentences)

    def _unfit(self) -> Episode | None:
        """Return an episode in which nothing on offer fits."""
        rng = self.rng
        count = rng.choice((1, 1, 1, 2))
        parts = []
        for api, need in self.drawn(count):
            part = self.part(api, need)
            if part:
                parts.append(part)
                self.used.add((api.id, need))
        if not parts:
            return None
        closed: set[str] = set()
        for part in parts:
            closed |= {one.id for one in self.catalog.by_tool[part.api.id.rpartition("/")[0]]}
            own = self.catalog.named[part.api.id] | need_tokens(part.text)
            for one in self.catalog.by_category[part.api.category]:
                if self.catalog.named[one.id] & own:
                    closed.add(one.id)
        total = rng.randrange(3, 10)
        apis: list[Api] = []
        for part in parts:
            for one in self.catalog.near(part.api, -(-total // len(parts)), rng, closed):
                if one not in apis and len(apis) < total:
                    apis.append(one)
        if len(apis) < 3:
            return None
        views, _ = self._views(apis, ())
        offered = [view.offered for view in views.values()]
        draft = compose(parts, rng)
        reason = rng.choice(sections("needs_frames.txt")["reason"])
        what = " and ".join(re.sub(r"^the ", "", self._what(part)) for part in parts)
        return Episode(
            SOURCE,
            self.now.isoformat(),
            draft.task,
            tuple(offered),
            (),
            "",
            reason.replace("{u}", what),
        )


def _eased(sentence: str) -> str:
    first = sentence.partition(" ")[0]
    return (
        sentence[:1].lower() + sentence[1:]
        if first
        in {
            "This",
            "Under",
            "At",
            "Of",
            "You",
            "The",
            "There",
            "For",
            "It",
            "Here",
            "These",
            "With",
            "No",
            "Nothing",
            "As",
            "Only",
            "On",
            "About",
        }
        else sentence
    )


def _first_id(body: Any) -> Any:
    for _, items in lists_of(body):
        if items and isinstance(items[0], Mapping) and "id" in items[0]:
            return items[0]["id"]
    return None
