"""Whether the two halves of a tool's result, its text and its data, say the same."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

_TRUE = {
    "nothing_fits": "Nothing fits well",
    "changed": "changed",
    "required": "required",
    "used": "*",
    "in_task": "the task",
    "truncated": "was cut",
    "kept_whole": "kept whole",
    "winning": "*",
    "pruned": "-",
    "has_response": "whole response kept",
    "callable": "can be called",
    "asks": "a person is asked first",
    "recorded": "recorded",
    "offline": "on this machine",
}
"""How the text says that a flag is set."""
_SAID = {"verdict": {"none": "not read again"}}
_LABELS = re.compile(
    r"^(?:Error|Hint|Next|Note|Reason|Now|Still open|Answer|Best partial answer): (.*?)\.?$",
    re.MULTILINE,
)
_FACTS = re.compile(r"\d[\d.,]*\d|\d|\w+/[\w/]+|run_[\w-]{10,}|toolsrv://\S+")


def leaves(value: Any, key: str = "") -> Iterator[tuple[str, Any]]:
    """Yield each scalar of a JSON value with the key that it stands under."""
    if isinstance(value, dict):
        for name, one in value.items():
            yield from leaves(one, name)
    elif isinstance(value, list):
        for one in value:
            yield from leaves(one, key)
    else:
        yield key, value


def missing_in_text(data: dict[str, Any], text: str) -> list[tuple[str, Any]]:
    """Return what the data say and the text does not."""
    line = " ".join(text.split())
    return [
        (key, value)
        for key, value in leaves(data)
        if value not in (None, "", 0)
        and (key, value) not in {("ok", True), ("parent", -1)}
        and not any(said in line for said in _ways(key, value))
    ] + [("ok", False)] * (data.get("ok") is False and "Error: " not in text)


def _ways(key: str, value: Any) -> list[str]:
    if value is True:
        return [_TRUE.get(key, "true")]
    if isinstance(value, str):
        value = _SAID.get(key, {}).get(value, value)
        plain = " ".join(value.split())
        escaped = " ".join(json.dumps(value, ensure_ascii=False)[1:-1].split())
        return [plain, escaped]
    return [str(value), f"{value:,}"]


def missing_in_data(data: dict[str, Any], text: str) -> list[str]:
    """Return what the text says and the data do not: sentences, numbers, ids, addresses."""
    flat = [" ".join(str(value).split()) for _, value in leaves(data)]
    keys = json.dumps(data, ensure_ascii=False)
    whole = " ".join([*flat, " ".join(keys.split()), "".join(flat)])  # host and path are one
    found = [one for one in _LABELS.findall(text) if " ".join(one.split()) not in whole]
    return found + [one for one in _FACTS.findall(text) if one not in whole]


def check(result: Any) -> None:
    """Assert that both halves of a result say the same."""
    content, *links = result.content
    data = result.structured_content
    assert data, content.text
    assert missing_in_text(data, content.text) == [], content.text
    assert missing_in_data(data, content.text) == [], content.text
    assert all(one.type == "resource_link" and str(one.uri) in content.text for one in links)
