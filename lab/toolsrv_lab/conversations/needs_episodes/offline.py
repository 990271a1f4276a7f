"""Sentences for responses of the offline catalog."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping
from functools import cache
from typing import Any

from toolsrv_lab.conversations.needs_episodes.catalog import Part
from toolsrv_lab.conversations.needs_episodes.tables import table
from toolsrv_lab.conversations.offline_episodes import sentence_of
from toolsrv_lab.conversations.wording import fill


def offline_sentence(
    part: Part, arguments: Mapping[str, Any], body: Any, rng: random.Random
) -> str:
    """Return a sentence written for the API of the offline catalog, or nothing."""
    try:
        return sentence_of(part.api.id, part.text, body, arguments, rng)
    except KeyError:
        own = _offline_forms().get(part.api.id.rpartition("/")[2], ())
    for form in rng.sample(own, len(own)):
        try:
            text = fill(form, body, arguments)
        except (LookupError, ValueError, TypeError):
            continue
        if text and "{" not in text:
            return (
                text[:1].upper() + text[1:]
                if re.match(r"[a-z]+ [a-z]", text) and not form.startswith("{r.re")
                else text
            )
    return ""


@cache
def _offline_forms() -> Mapping[str, tuple[str, ...]]:
    """Return API -> forms (``wording.fill``) for offline APIs without sentences elsewhere."""
    found: dict[str, tuple[str, ...]] = {}
    for line in table("needs_offline.txt"):
        name, _, rest = line.partition("\t")
        found[name] = tuple(re.split(r"\|(?![a-z]+[:}])", rest))
    return found
