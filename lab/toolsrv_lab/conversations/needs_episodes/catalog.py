"""APIs of ToolBench's archive and of the offline catalog, with their needs."""

from __future__ import annotations

import hashlib
import json
import random
import re
import tarfile
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from toolsrv_catalogs.offline import load_offline_catalog
from toolsrv_catalogs.toolbench import read_tool_bytes
from toolsrv_lab.conversations.needs_episodes.schemas import is_telling, plain_schema
from toolsrv_lab.conversations.needs_episodes.tables import VERBS, split_words, stem
from toolsrv_lab.instructions.errands import MARK, written
from toolsrv_registry.api import Api, Parameter

HELD_OUT_CATEGORIES = frozenset({"Cybersecurity", "Events", "Food", "Logistics", "Translation"})

HELD_OUT_SHARE = 5

_ADULT = re.compile(r"porn|xxx|hentai|nsfw|adult|erotic|onlyfans|cams\b|sex_", re.IGNORECASE)


def is_held_out(api: Api) -> bool:
    """Whether the API's tool is kept for evaluation: no episode has it, not even on offer."""
    if api.category in HELD_OUT_CATEGORIES:
        return True
    tool = "/".join(api.id.split("/")[:2])
    return int(hashlib.sha256(tool.encode()).hexdigest(), 16) % HELD_OUT_SHARE == 0


@dataclass(frozen=True)
class Part:
    """One need in a task. ``kind``: need, same (the need before with another value), chain, unserved.

    ``values``: parameter -> (value as the API takes it, words that tell it).
    """

    api: Api
    text: str
    values: Mapping[str, tuple[str, str]]
    kind: str = "need"
    chained: str = ""


class Catalog:
    """The APIs that may be used, their needs, and which are near which."""

    def __init__(self, toolenv: Path) -> None:
        apis, self.schemas = _read(toolenv)
        offline = load_offline_catalog().apis
        usable = [
            api for api in (*apis, *offline) if not is_held_out(api) and not _ADULT.search(api.id)
        ]
        self.apis = {api.id: api for api in usable}
        self.offline = [api for api in offline if api.id in self.apis]
        self.is_offline = {api.id for api in self.offline}
        self.by_tool: dict[str, list[Api]] = defaultdict(list)
        self.by_category: dict[str, list[Api]] = defaultdict(list)
        self._alike: dict[str, set[str]] = {}
        self.words: dict[str, frozenset[str]] = {}
        self.named: dict[str, frozenset[str]] = {}
        for api in usable:
            self.by_tool[api.id.rpartition("/")[0]].append(api)
            self.by_category[api.category].append(api)
            name = frozenset(stem(w) for w in split_words(api.name) if w not in VERBS)
            self.named[api.id] = name
            self.words[api.id] = name | frozenset(
                stem(w) for w in re.findall(r"[a-z]+", api.description.lower())[:30] if len(w) > 3
            )
        self.parameters = {api.id: {p.name: p for p in api.parameters} for api in usable}
        self.pool: dict[str, list[tuple[str, str]]] = defaultdict(list)
        self.own: dict[tuple[str, str], list[tuple[str, str]]] = defaultdict(list)
        self.needs: list[tuple[Api, str]] = []
        for api_id, needs in written().items():
            if api_id not in self.apis:
                continue
            api = self.apis[api_id]
            for need in needs:
                if any(match[1] not in self.parameters[api_id] for match in MARK.finditer(need)):
                    continue
                for match in MARK.finditer(need):
                    pair = (match[2], match[2] if match[3] is None else match[3])
                    self.own[api_id, match[1]].append(pair)
                    self.pool[match[1].lower()].append(pair)
                self.needs.append((api, need))
        self.of_api: dict[str, list[str]] = defaultdict(list)
        for api, need in self.needs:
            self.of_api[api.id].append(need)

    def near(self, api: Api, count: int, rng: random.Random, barred: set[str]) -> list[Api]:
        """Return distractors: of the same tool, near ones of the category, others."""
        out: list[Api] = []
        tool = [one for one in self.by_tool[api.id.rpartition("/")[0]] if one.id not in barred]
        alike = self.same_purpose(api)
        tool = [one for one in tool if one.id not in alike]
        rng.shuffle(tool)
        if len(tool) > 6:
            tool = sorted(
                tool, key=lambda one: -len(self.words[one.id] & self.words[api.id]) + rng.random()
            )
        out += tool[: rng.choice((0, 1, 2, 2, 3, 4))]
        category = rng.sample(
            self.by_category[api.category], min(160, len(self.by_category[api.category]))
        )
        own = self.words[api.id]
        ranked = sorted(
            category, key=lambda one: -len(self.words[one.id] & own) / (3 + len(self.words[one.id]))
        )
        out += [
            one for one in ranked if one.id not in barred and one.id not in alike and one not in out
        ][: rng.choice((1, 2, 2, 3))]
        everything = list(self.apis.values())
        while len(out) < count:
            one = rng.choice(everything)
            if one.id not in barred and one not in out:
                out.append(one)
        rng.shuffle(out)
        return out[:count]

    def same_purpose(self, api: Api) -> set[str]:
        """Return the APIs of the category that could as well serve its needs."""
        if api.id in self._alike:
            return self._alike[api.id]
        own = self.named[api.id]
        table = set()
        for one in self.by_category[api.category]:
            other = self.named[one.id]
            if one.id != api.id and (
                own == other or (own and len(own & other) / len(own | other) >= 0.75)
            ):
                table.add(one.id)
        self._alike[api.id] = table
        return table


def _read(toolenv: Path) -> tuple[list[Api], dict[str, Any]]:
    """Return the APIs of an archive and the plain response schemas of those that have telling ones."""
    apis: list[Api] = []
    examples: dict[tuple[str, str], list[Any]] = {}
    found: list[tuple[str, str, tuple[Api, ...]]] = []
    with tarfile.open(toolenv) as archive:
        for member in archive:
            parts = member.name.split("/")
            stream = archive.extractfile(member) if member.name.endswith(".json") else None
            if stream is None or len(parts) < 4:
                continue
            kind, category, stem = parts[-3], parts[-2], parts[-1].removesuffix(".json")
            if kind == "response_examples" or "response_examples" in parts:
                examples[category, stem] = json.loads(stream.read()).get("api_list") or []
            elif "tools" in parts:
                tool = read_tool_bytes(stream.read(), category, source=parts[-1])
                found.append((category, stem, tool.apis))
    schemas: dict[str, Any] = {}
    for category, stem, members in sorted(found, key=lambda one: one[:2]):
        known = {
            str(one.get("name")): one.get("schema") for one in examples.get((category, stem), ())
        }
        for api in members:
            apis.append(api)
            schema = plain_schema(known.get(api.name))
            if schema is not None and is_telling(schema):
                schemas[api.id] = schema
    unique: dict[str, Api] = {}
    for api in apis:
        unique.setdefault(api.id, api)
    return list(unique.values()), schemas


def missing_parameters(api: Api, need: str) -> list[Parameter]:
    """Return the required parameters that a need gives no value for."""
    told = {match[1] for match in MARK.finditer(need)}
    return [one for one in api.required if one.name not in told]


_GROUPS = (
    frozenset({"Weather", "Travel", "Location", "Mapping", "Transportation", "Energy"}),
    frozenset(
        {
            "Finance",
            "Financial",
            "Business",
            "Commerce",
            "eCommerce",
            "Payments",
            "Business_Software",
        }
    ),
    frozenset({"Music", "Movies", "Entertainment", "Media", "Video_Images", "Social", "Gaming"}),
    frozenset(
        {"Text_Analysis", "Education", "Tools", "Science", "Cryptography", "Data", "Database"}
    ),
    frozenset(
        {"Communication", "Email", "SMS", "Advertising", "Search", "Monitoring", "News_Media"}
    ),
    frozenset(
        {"Health_and_Fitness", "Medical", "Sports", "Jobs", "Devices", "Reward", "Other", "Storage"}
    ),
)

GROUP = {category: at for at, group in enumerate(_GROUPS) for category in group}
