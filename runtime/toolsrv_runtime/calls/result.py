"""What one call came to: a kind from a closed list, the response, and what to do next.

Shared by every world that answers calls. Knows nothing of HTTP or policies.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field

from toolsrv_runtime.calls.attachment import Attachment
from toolsrv_runtime.calls.spool import Spooled
from toolsrv_runtime.outcome import KeptFile, Source

Kind = Literal[
    "ok",
    "bad_arguments",
    "unauthorized",
    "not_subscribed",
    "rate_limited",
    "not_found",
    "gone",
    "timed_out",
    "blocked_by_policy",
    "needs_consent",
    "declined",
    "needs_input",
    "too_large",
    "not_json",
    "server_error",
    "network_error",
    "replay_miss",
]
KINDS: tuple[Kind, ...] = get_args(Kind)

_BY_STATUS: dict[int, Kind] = {
    0: "network_error",
    401: "unauthorized",
    402: "not_subscribed",
    403: "unauthorized",
    404: "not_found",
    408: "timed_out",
    410: "gone",
    413: "bad_arguments",
    429: "rate_limited",
    504: "timed_out",
}


def kind_of_status(status: int) -> Kind:
    """Return the kind that an HTTP status alone speaks for (0: no response came)."""
    if 200 <= status < 300:
        return "ok"
    if status in _BY_STATUS:
        return _BY_STATUS[status]
    return "bad_arguments" if 400 <= status < 500 else "server_error"


class Consent(BaseModel):
    """What a person is asked to allow, and then allows or declines: this one call and no other.

    ``arguments`` are those that would be sent; ``reason`` says why a person is asked.
    """

    model_config = ConfigDict(frozen=True)

    api_id: str
    method: str
    host: str
    path: str
    arguments: dict[str, Any]
    reason: str = ""

    def covers(self, other: Consent) -> bool:
        """Whether this consent was given for exactly that call."""
        return self.model_copy(update={"reason": ""}) == other.model_copy(update={"reason": ""})

    @property
    def request(self) -> str:
        """The request line of the call: method, host and path."""
        return f"{self.method} {self.host}{self.path}"


Ask = Callable[[Consent], Coroutine[Any, Any, bool | None]]
"""Ask a person for consent to one call: True allowed, False declined, None nobody answered.

Cancelled when nobody waits for the answer any more.
"""


class CallResult(BaseModel):
    """One call and what it came to.

    ``status`` is the HTTP status, 0 when no response came; ``response`` is the JSON value or the
    text; ``error`` is empty exactly when the call succeeded; ``seconds`` is wall time. ``hint``
    says what to do next, or that a call went well without the key that it asks for, ``page`` where to subscribe, ``retry_after`` how many seconds the host
    asks to be left alone, ``headers`` those of the response that lead on (``location``,
    ``link``, …), ``files`` what it brought as bytes, ``spooled`` the part file of a response that was
    too large for memory (who made the call moves or removes it), ``kept`` the files of it that were
    saved, ``consent`` what a person would have to allow or has declined, and
    ``nearest`` the recorded arguments that are most like those of a ``replay_miss``.
    """

    model_config = ConfigDict(frozen=True)

    api_id: str
    arguments: dict[str, Any]
    url: str
    status: int
    response: Any
    error: str
    source: Source
    seconds: float
    kind: Kind = Field(default_factory=lambda known: kind_of_status(known["status"]))
    hint: str = ""
    page: str = ""
    retry_after: float | None = None
    headers: dict[str, str] = Field(default_factory=dict)
    files: tuple[Attachment, ...] = ()
    spooled: Spooled | None = Field(default=None, exclude=True)
    kept: tuple[KeptFile, ...] = ()
    consent: Consent | None = None
    nearest: dict[str, Any] | None = None

    @property
    def ok(self) -> bool:
        """Whether the API answered with success, and with something that can be used."""
        return self.kind == "ok"

    @property
    def down(self) -> bool:
        """Whether the API is out of service, so that other arguments would change nothing.

        A 500 may be blamed on an argument, and a time-out on the moment; what was simulated says
        nothing of the API.
        """
        out = self.kind in _DOWN or self.status in _OUT_OF_SERVICE
        return out and self.source != "simulated"

    @property
    def refused(self) -> bool:
        """Whether the call was refused here, before anything was sent."""
        return self.status == 0 and self.kind in _REFUSED


_DOWN = frozenset({"unauthorized", "not_subscribed", "rate_limited", "gone", "network_error"})
_OUT_OF_SERVICE = frozenset({502, 503})
_REFUSED = frozenset(
    {
        "bad_arguments",
        "blocked_by_policy",
        "needs_consent",
        "declined",
        "needs_input",
        "unauthorized",
    }
)


def declined(result: CallResult) -> CallResult:
    """Return the result of a call that needed consent once a person has declined it."""
    request = f" {result.consent.request}" if result.consent else " this call"
    return result.model_copy(
        update={
            "kind": "declined",
            "error": f"{result.api_id}: the person said no to{request}: the call must not be "
            "retried or worked around, neither by this API nor by another that does the same",
            "hint": "only the person may run it again and say yes",
        }
    )
