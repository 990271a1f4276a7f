"""What a client of ToolBench's service sends, read and checked (spec: formats 6.1, 6.4).

Names are made into ids that can be looked up, and arguments into a JSON object; nothing of it is
ever a path or source text. Does no I/O and knows no catalog.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

from toolsrv_catalogs.layout import api_place
from toolsrv_registry import names, wellformed
from toolsrv_registry.errors import UsageError

NAMES = ("category", "tool_name", "api_name")
VIRTUAL_FIELDS = (*NAMES, "tool_input", "strip", "toolbench_key")
"""What StableToolBench's server demands; ToolBench's clients may leave out the last two."""
RAPIDAPI_FIELDS = (*NAMES, "tool_input")
KEY_FIELD = "toolbench_key"


@dataclass(frozen=True, slots=True)
class WorldRequest:
    """One call as its client names it: names in any spelling, arguments as text or object."""

    category: str
    tool_name: str
    api_name: str
    tool_input: str | dict[str, Any]
    strip: str = ""

    def filters(self) -> bool:
        """Whether only what a schema names is wanted of the response.

        ``random`` means of every other one; here it is the same one whenever it is asked again.
        """
        if self.strip == "random":
            return zlib.crc32(json.dumps([self.api_name, self.tool_input]).encode()) % 2 == 1
        return self.strip == "filter"

    def api_ids(self) -> tuple[str, ...]:
        """Return the ids that may be meant, the likeliest first.

        A tool's name may end in ``_for_<category>`` and an API's in ``_for_<tool>``, as
        StableToolBench's directories and functions do; a name that really ends so comes first.
        """
        category = names.standardize_category(self.category)
        tool = names.standardize(self.tool_name)
        api = names.standardize(self.api_name)
        tools = (tool, tool.removesuffix(f"_for_{names.standardize(category)}"))
        apis = (
            api,
            self.api_name.partition(f"_for_{self.tool_name}")[0],
            api.removesuffix(f"_for_{tools[1]}"),
        )
        return tuple(dict.fromkeys(api_place(category, *one) for one in product(tools, apis)))


def read_object(data: bytes) -> dict[str, Any]:
    """Return the JSON object that a body is.

    Raises:
        UsageError: it is none.
    """
    try:
        found = wellformed.loads(data)
    except (ValueError, RecursionError):  # ValueError also for bytes that are no text
        found = None
    if not isinstance(found, dict):
        raise UsageError(
            "the body is not a JSON object", hint=f"send one with the fields {', '.join(NAMES)}"
        )
    return found


def read_request(body: Mapping[str, Any], fields: tuple[str, ...]) -> WorldRequest:
    """Return the request that has at least ``fields``; other fields are passed over.

    Raises:
        UsageError: fields are missing or of another type; names them, never their values.
    """
    wrong = [
        name
        for name in fields
        if not isinstance(body.get(name), (str, dict) if name == "tool_input" else str)
    ]
    if wrong:
        raise UsageError(
            f"missing, or of a wrong type: {', '.join(wrong)}",
            hint="all are text; tool_input may be an object too",
        )
    strip = body.get("strip", "")
    return WorldRequest(
        category=body["category"],
        tool_name=body["tool_name"],
        api_name=body["api_name"],
        tool_input=body["tool_input"],
        strip=strip if isinstance(strip, str) else "",
    )
