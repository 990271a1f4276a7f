"""Recordings of calls: one recorded call, its key, and the masking of secrets.

The key is a SHA-256 hash over the API and its canonical arguments, so that equal calls in different
spelling share it. Keys, tokens, passwords and Authorization headers are masked before a recording
is made. ``storage`` keeps recordings, ``callers`` records and replays them.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from typing import Any, Literal, Self, get_args

from pydantic import BaseModel, ConfigDict, Field, field_validator

from toolsrv_registry import wellformed
from toolsrv_registry.api import Api, Parameter
from toolsrv_registry.documents import content_hash
from toolsrv_registry.names import standardize
from toolsrv_registry.wellformed import too_deep
from toolsrv_runtime.calls import arguments as args
from toolsrv_runtime.calls.response_body import Attachment, redact
from toolsrv_runtime.calls.result import CallResult, ResultKind
from toolsrv_runtime.errors import ArgumentError

_SIMPLER = "call it with simpler arguments"


def canonical_arguments(api: Api, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments as they count for the key, under the provider's names, sorted.

    Raises:
        ArgumentError: they do not fit the API.
    """
    values = args.bind(api, arguments)
    for parameter in api.optional:
        if parameter.name not in values and parameter.default not in ("", None):
            values |= _default(api, parameter)
    return {name: _normalize_numbers(values[name]) for name in sorted(values)}


def call_key(api: Api, arguments: Mapping[str, Any]) -> str:
    """Return the key of a call, 64 hex digits.

    Arguments that do not fit the API have one too, over what they are as given: a recording of
    another program may hold such a call, and the error that came of it.

    Raises:
        ArgumentError: they are nested too deeply, or too long, to be looked at.
    """
    if too_deep(dict(arguments)):
        raise ArgumentError(f"{api.id}: the arguments are nested too deeply", hint=_SIMPLER)
    try:
        meant: Any = canonical_arguments(api, arguments)
    except ArgumentError:
        meant = {"unbound": _normalize_numbers(dict(arguments))}
    try:
        text = json.dumps([api.id, meant], sort_keys=True, separators=(",", ":"))
    except ValueError as error:  # an endless integer
        raise ArgumentError(f"{api.id}: an argument is too long", hint=_SIMPLER) from error
    return hashlib.sha256(text.encode()).hexdigest()


def _default(api: Api, parameter: Parameter) -> dict[str, Any]:
    """Return a parameter's default, typed; nothing where it does not fit its own type."""
    alone = api.model_copy(update={"required": (), "optional": (parameter,)})
    try:
        return args.bind(alone, {parameter.name: parameter.default})
    except ArgumentError:
        return {}


def _normalize_numbers(value: Any) -> Any:
    """Write 15.0 as 15 at any depth: JSON has one kind of number."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {str(key): _normalize_numbers(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_normalize_numbers(inner) for inner in value]
    return value


MASK = "[key]"
_SHORTEST = 8
"""Characters from which an argument's value is searched for in what came back."""

_CREDENTIAL = re.compile(
    r"(^|_)((api|app|access|secret|private|rapidapi|toolbench|subscription)_?key"
    r"|(auth|access|refresh|session|bearer|bot|api|user)_?token"
    r"|(client_?)?secret|authorization|bearer|password|passwd|pwd|credentials?|cookie"
    r"|session_?id)($|_)"
)
_PERHAPS = re.compile(r"(^|_)(token|key|appid|app_id|auth|signature)($|_)")
_RANDOM = re.compile(r"(?=\S*\d)(?=\S*[A-Za-z])\S{16,}")
_HEADER = re.compile(r"\b(bearer|basic)\s+(?=[\w.~+/=-]*\d)[\w.~+/=-]{16,}", re.IGNORECASE)


def mask_arguments(arguments: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return arguments without credentials, and the values that were taken out."""
    found: list[str] = []
    return {name: _masked(name, value, found) for name, value in arguments.items()}, tuple(found)


def mask_secrets(value: Any, secrets: Collection[str]) -> Any:
    """Return a JSON value without the secrets and without credentials of HTTP headers."""
    if isinstance(value, str):
        return _HEADER.sub(rf"\1 {MASK}", redact(value, secrets))
    if isinstance(value, dict):
        return {
            mask_secrets(key, secrets): mask_secrets(inner, secrets) for key, inner in value.items()
        }
    if isinstance(value, list):
        return [mask_secrets(inner, secrets) for inner in value]
    if isinstance(value, (int, float)) and str(value) in secrets:
        return MASK
    return value


def _masked(name: str, value: Any, found: list[str]) -> Any:
    if isinstance(value, dict):
        return {key: _masked(key, inner, found) for key, inner in value.items()}
    if isinstance(value, list):
        return [_masked(name, inner, found) for inner in value]
    key, text = standardize(name), str(value)
    secret = _CREDENTIAL.search(key) or (_PERHAPS.search(key) and _RANDOM.fullmatch(text))
    if not secret or value in ("", None) or isinstance(value, bool):
        return value
    if len(text) >= _SHORTEST:
        found.append(text)
    return MASK


Provenance = Literal["live", "imported", "simulated"]
PROVENANCES: tuple[Provenance, ...] = get_args(Provenance)
"""``live`` was called here, ``imported`` comes from elsewhere, ``simulated`` nobody ever said."""


def _is_unset(value: object) -> bool:
    """Leave a later field out of a dump while it is empty: digests of old entries stay."""
    return not value


class Recording(BaseModel):
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
    kind: ResultKind
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
    headers: dict[str, str] = Field(default_factory=dict, exclude_if=_is_unset)
    files: tuple[Attachment, ...] = Field(default=(), exclude_if=_is_unset)

    @field_validator("arguments", "response")
    @classmethod
    def _not_too_deep(cls, value: Any) -> Any:
        if too_deep(value):
            raise ValueError("nested too deeply")
        return value

    @classmethod
    def from_result(
        cls, api: Api, result: CallResult, secrets: frozenset[str] = frozenset()
    ) -> Self:
        """Return what is recorded of a call that was just made, without ``secrets``.

        Raises:
            ArgumentError: the arguments are too deep or too long to be recorded.
        """
        key = call_key(api, result.arguments)
        arguments, given = mask_arguments(result.arguments)
        hidden = secrets | set(given)
        return cls(
            key=key,
            api_id=api.id,
            arguments=mask_secrets(arguments, hidden),
            status=result.status,
            kind=result.kind,
            response=mask_secrets(result.response, hidden),
            error=mask_secrets(result.error, hidden),
            hint=mask_secrets(result.hint, hidden),
            page=mask_secrets(result.page, hidden),
            retry_after=result.retry_after,
            seconds=round(result.seconds, 6),
            provenance="simulated" if result.source == "simulated" else "live",
            origin=result.source,
            recorded_at=datetime.now(UTC).isoformat(timespec="microseconds"),
            api_hash=content_hash(api),
            headers={name: mask_secrets(one, hidden) for name, one in result.headers.items()},
            files=tuple(one for one in result.files if not one.contains_any(hidden)),
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
