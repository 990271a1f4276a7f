"""Into how many networks one is split, as the length of their prefix: "10.0.0.0/24 into 4" are /26. Pure."""

from __future__ import annotations

import re
from ipaddress import ip_network

from toolsrv_registry.api import Api, Parameter
from toolsrv_runtime.planner.reading.wish import Wish
from toolsrv_runtime.values import kinds
from toolsrv_runtime.values.facts import words
from toolsrv_runtime.values.kinds import normalise_value
from toolsrv_runtime.values.lexicon import TO_TWELVE

_INTO = re.compile(
    rf"\b(?:into|in|make|get|need|for|of)\s+(?P<count>\d{{1,6}}|{TO_TWELVE}|sixteen)\s+"
    r"(?:(?:equal(?:ly)?|equally sized|same-sized|smaller|separate|even)\s+)*"
    r"(?:sub-?nets?|sub-?networks?|networks?|nets|blocks|parts|pieces|ranges|segments|vlans)\b"
    rf"|\binto\s+(?P<half>half|halves|quarters|(?P<bare>\d{{1,6}}|{TO_TWELVE}))(?=\s*(?:[.,;?!]|$|and\b))",
    re.IGNORECASE,
)
_SHARES = {"half": 2, "halves": 2, "quarters": 4}


def told(parameter: Parameter, _api: Api, wish: Wish) -> str:
    """Return the prefix of the one network of a text, split into as many as that says; or ""."""
    if "prefix" not in words(parameter.name).split():
        return ""
    text = wish.part if _INTO.search(wish.part) else wish.task
    match = _INTO.search(text)
    networks = set(kinds.find_values("network", text)) or set(
        kinds.find_values("network", wish.task)
    )
    if match is None or len(networks) != 1:
        return ""
    said = match["count"] or match["bare"] or ""
    count = _SHARES.get((match["half"] or "").lower()) or int(normalise_value("number", said))
    try:
        length = ip_network(networks.pop(), strict=False).prefixlen
    except ValueError:
        return ""
    return str(length + (count - 1).bit_length()) if count > 1 else ""
