"""One recorded call: what was asked, what came of it, where that came from, and when."""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime
from typing import Any, Literal, Self, get_args

from pydantic import BaseModel, ConfigDict, Field, field_validator

from toolsrv_registry import wellformed
from toolsrv_registry.api import Api
from toolsrv_registry.documents import content_hash
from toolsrv_registry.wellformed import too_deep
from toolsrv_runtime.calls.attachment import Attachment
from toolsrv_runtime.calls.recordings.key import call_key
from toolsrv_runtime.calls.recordings.masking import masked, masked_arguments
from toolsrv_runtime.calls.result import CallResult, Kind

Provenance = Literal["live", "imported", "simulated"]
PROVENANCES: tuple[Provenance, ...] = get_args(Provenance)
"""``live`` was called here, ``imported`` comes from elsewhere, ``simulated`` nobody ever said."""


def _nothing(value: object) -> bool:
    """Leave a later field out of a dump while it is empty: digests of old entries stay."""
    return not value


class Entry(BaseModel):
    """A recorded call. Holds no secret.

    ``arguments`` are as they were given, in their order; ``key`` is ``call_key`` of them.
    ``recorded_at`` is UTC in ISO 8601, ``""`` where nobody knows; ``api_hash`` the content hash of
    the API as its catalog had it; ``origin`` says in a few words who answered. The other fields
    are those of ``CallResult``.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    key: str = Field(pattern=r"^[0-9a-f]{64}$")
    api_id: str = Field(min_length=1, max_length=1_000)
    arguments: dict[str, Any]
    status: int = Field(ge=0, le=999)
    kind: Kind
    response: Any
    error: str
    hint: str = ""
    page: str = ""
    retry_after: float | None = Field(default=None, allow_inf_nan=False)
    seconds: float = Field(ge=0, allow_inf_nan=False)
    provenance: Provenance
    origin: str = Field(max_length=100)
    recorded_at: str = Field(pattern=r"^(\d{4}-\d\d-\d\dT[\d:.]{8,15}\+00:00)?$")
    api_hash: str = Field(pattern=r"^([0-9a-f]{64})?$")
    headers: dict[str, str] = Field(default_factory=dict, exclude_if=_nothing)
    files: tuple[Attachment, ...] = Field(default=(), exclude_if=_nothing)

    @field_validator("arguments", "response")
    @classmethod
    def _not_too_deep(cls, value: Any) -> Any:
        if too_deep(value):
            raise ValueError("nested too deeply")
        return value

    @classmethod
    def of(cls, api: Api, result: CallResult, secrets: frozenset[str] = frozenset()) -> Self:
        """Return what is recorded of a call that was just made, without ``secrets``.

        Raises:
            ArgumentError: the arguments are too deep or too long to be recorded.
        """
        key = call_key(api, result.arguments)
        arguments, given = masked_arguments(result.arguments)
        hidden = secrets | set(given)
        return cls(
            key=key,
            api_id=api.id,
            arguments=masked(arguments, hidden),
            status=result.status,
            kind=result.kind,
            response=masked(result.response, hidden),
            error=masked(result.error, hidden),
            hint=masked(result.hint, hidden),
            page=masked(result.page, hidden),
            retry_after=result.retry_after,
            seconds=round(result.seconds, 6),
            provenance="simulated" if result.source == "simulated" else "live",
            origin=result.source,
            recorded_at=datetime.now(UTC).isoformat(timespec="microseconds"),
            api_hash=content_hash(api),
            headers={name: masked(one, hidden) for name, one in result.headers.items()},
            files=tuple(one for one in result.files if not one.holds(hidden)),
        )

    def result(self, arguments: dict[str, Any], url: str) -> CallResult:
        """Return what a call with these (bound) arguments gives again."""
        return CallResult(
            api_id=self.api_id,
            arguments=arguments,
            url=url,
            status=self.status,
            response=wellformed.value(self.response),
            error=wellformed.text(self.error),
            source="simulated" if self.provenance == "simulated" else "recorded",
            seconds=0.0,
            kind=self.kind,
            hint=wellformed.text(self.hint),
            page=wellformed.text(self.page),
            retry_after=self.retry_after,
            headers={name: wellformed.text(one) for name, one in self.headers.items()},
            files=self.files,
        )

    @property
    def digest(self) -> str:
        """A hash over what was asked, what came and when; the same wherever the entry lies."""
        what = self.model_dump(exclude={"provenance", "origin"})
        return hashlib.sha256(_text(what, sort=True).encode()).hexdigest()

    def line(self) -> str:
        """Return the entry as one line of JSON, in ASCII."""
        return _text(self.model_dump(), sort=False)


def _text(value: dict[str, Any], *, sort: bool) -> str:
    return json.dumps(value, ensure_ascii=True, sort_keys=sort, separators=(",", ":"))
