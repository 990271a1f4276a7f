"""Which APIs a check calls, with what, and why it leaves the others out.

Pure: catalog entries and earlier checks in, a plan out. The sample depends on the seed and the
catalog alone, not on what was checked before: a run that was stopped goes on with the same one.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from toolsrv_registry import documents
from toolsrv_registry.api import Api
from toolsrv_registry.health import HealthEntry, Verdict
from toolsrv_runtime.check.samples import addressed, sample, unknown_placeholders
from toolsrv_runtime.check.worlds import host_of


@dataclass(frozen=True, slots=True)
class Item:
    """One API to call: with its URL's placeholders under its parameters' own names."""

    api: Api
    content_hash: str
    host: str
    arguments: Mapping[str, Any]
    guessed: bool


@dataclass(frozen=True, slots=True)
class Plan:
    """``items`` to call; ``not_checked`` id -> why; ``recent`` were checked lately."""

    items: tuple[Item, ...]
    not_checked: Mapping[str, str]
    recent: int


def make_plan(
    apis: Iterable[Api],
    *,
    latest: Mapping[tuple[str, str], HealthEntry],
    since: str,
    refuses: Callable[[Api], str],
    size: int | None = None,
    seed: int = 0,
) -> Plan:
    """Return the plan for these APIs.

    Args:
        apis: the APIs to choose from, in catalog order.
        latest: the checks that are kept, by id and content hash.
        since: ISO time; an API that was checked after it is left out, unless its provider only
            said that it was called too often.
        refuses: why the world cannot call an API, "" when it can.
        size: take a sample of that many of the APIs that can be called.
        seed: of the sample.
    """
    items: list[Item] = []
    not_checked: dict[str, str] = {}
    for api in apis:
        item = _item(api, refuses)
        if isinstance(item, Item):
            items.append(item)
        else:
            not_checked[api.id] = item
    if size is not None and size < len(items):
        chosen = sorted(random.Random(seed).sample(range(len(items)), size))  # noqa: S311 - no secret
        items = [items[place] for place in chosen]
    due = [one for one in items if not _recent(latest.get((one.api.id, one.content_hash)), since)]
    return Plan(tuple(due), not_checked, recent=len(items) - len(due))


def _item(api: Api, refuses: Callable[[Api], str]) -> Item | str:
    if why := refuses(api):
        return why
    if api.security and all(api.security):
        return "it needs credentials"
    target = addressed(api)
    if unknown := unknown_placeholders(target):
        return f"nothing fills {unknown[0]!r} in its address"
    found = sample(target)
    if found.missing:
        return f"no value known for {found.missing[0]!r}"
    return Item(
        api=target,
        content_hash=documents.content_hash(api),
        host=host_of(target),
        arguments=found.values,
        guessed=found.guessed,
    )


def _recent(entry: HealthEntry | None, since: str) -> bool:
    if entry is None or entry.verdict is Verdict.RATE_LIMITED:
        return False
    return entry.checked_at > since
