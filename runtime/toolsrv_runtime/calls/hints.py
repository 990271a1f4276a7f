"""What to do next after a call that did not go well. Text only."""

from __future__ import annotations

from urllib.parse import quote

from toolsrv_registry.api import Api
from toolsrv_runtime.calls.auth import key_names, on_rapidapi
from toolsrv_runtime.calls.result import Kind

TOO_LARGE = "ask for less, with a limit or a page"
_HINTS: dict[Kind, str] = {
    "not_found": "look at the arguments, or choose another API",
    "gone": "choose another API; its provider has taken it away",
    "timed_out": "try again, or raise the setting call_seconds",
    "too_large": TOO_LARGE,
    "not_json": "choose another API if the text is of no use",
    "server_error": "try again later, or choose another API",
    "network_error": "look at the network, or try again later",
    "blocked_by_policy": "only hosts of the catalog are called",
}
_UNSURE: frozenset[Kind] = frozenset({"timed_out", "server_error", "network_error"})


def hint(kind: Kind, api: Api, host: str, retry_after: float | None) -> str:
    """Return what to do about an outcome, "" where nothing is wrong."""
    if kind in _UNSURE and api.method.upper() in ("POST", "PATCH"):
        return f"the {api.method.upper()} may have been carried out: look before calling again"
    match kind:
        case "network_error" if api.mcp is not None:
            return f"see whether its server works: toolsrv catalog import mcp:{api.mcp.server}"
        case "gone" if api.mcp is not None:
            return f"read its server again: toolsrv catalog import mcp:{api.mcp.server}"
        case "unauthorized":
            names = key_names(api, host) or (host,)
            name = names[0] if "@" in names[0] else names[-1]
            return f"store a key that the host takes: toolsrv keys set {name}"
        case "bad_arguments":
            return f"look at the arguments: toolsrv describe {api.id}"
        case "not_subscribed":
            return "subscribe on the provider's page, then call again"
        case "rate_limited" if retry_after is not None:
            return f"wait {retry_after:.0f} seconds, then call again"
        case "rate_limited":
            return "wait a while, then call again"
    return _HINTS.get(kind, "")


def page(api: Api, host: str, known: str) -> str:
    """Return the page where an API is subscribed to."""
    if known.startswith("https://"):
        return known
    if on_rapidapi(host):
        return f"https://rapidapi.com/search/{quote(api.tool, safe='')}"
    return f"https://{host}"
