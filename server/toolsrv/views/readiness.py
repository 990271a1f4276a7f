"""Readiness of an API for a call: provider's terms, key, recording, last success.

Nothing here calls anything; what cannot be looked up is left out and never fails a search.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict, Field

from toolsrv.plain import plain
from toolsrv_registry.errors import ToolsrvError
from toolsrv_registry.storage.entries import Pricing, Terms
from toolsrv_runtime.calls.result import CallReadiness, KeyState

if TYPE_CHECKING:
    from toolsrv.settings import Settings
    from toolsrv_registry.api import Api
    from toolsrv_registry.storage.store import Store
    from toolsrv_runtime.calls.caller import Caller

log = logging.getLogger(__name__)

LEGEND = {
    "+": "can be called now",
    "?": "a person is asked first",
    "-": "cannot be called now",
    "K": "key set",
    "R": "recorded",
    "O": "answered on this machine",
    "L": "no call left today",
    "$": "paid",
    "F": "freemium",
}


def legend(signs: Iterable[str]) -> str:
    """Return what those of the signs mean that are shown."""
    shown = set("".join(signs))
    return ", ".join(f"{sign} {meaning}" for sign, meaning in LEGEND.items() if sign in shown)


def _silent(value: object) -> bool:
    """Leave out what says nothing: a hit in a model's context is to be short."""
    return value is None or value is False or value == ""


class Readiness(BaseModel):
    """Whether a call can work now, and what it costs."""

    model_config = ConfigDict(frozen=True)

    callable: bool = Field(description="It can be called now, perhaps once a person says yes.")
    asks: bool = Field(
        default=False, exclude_if=_silent, description="A person is asked for consent first."
    )
    key: KeyState = Field(
        default="", exclude_if=_silent, description="set, missing, or empty where none is needed."
    )
    lacks: str = Field(
        default="",
        exclude_if=_silent,
        description="What a call needs and lacks: a key that is not set. Empty: nothing.",
    )
    recorded: bool = Field(
        default=False, exclude_if=_silent, description="Calls of it are recorded."
    )
    offline: bool = Field(
        default=False, exclude_if=_silent, description="Answered on this machine."
    )
    last_success: str = Field(
        default="",
        exclude_if=_silent,
        description="When a live call last succeeded (ISO 8601, UTC); empty: never.",
    )
    calls_left: int | None = Field(
        default=None,
        exclude_if=_silent,
        description="Calls left to its host today; null: no limit.",
    )
    pricing: Pricing = Field(
        default="", exclude_if=_silent, description="Its provider's plan; empty: unknown."
    )
    success_percent: int | float | None = Field(
        default=None,
        exclude_if=_silent,
        description="Calls that succeeded when its catalog was made.",
    )
    service_percent: int | float | None = Field(
        default=None, exclude_if=_silent, description="Service level, as stated."
    )
    latency_ms: int | float | None = Field(
        default=None, exclude_if=_silent, description="Mean latency, as stated."
    )
    popularity: int | float | None = Field(
        default=None, exclude_if=_silent, description="0 to 10, as stated."
    )

    @property
    def terms(self) -> Terms:
        """The provider's terms alone."""
        return Terms(**{name: getattr(self, name) for name in Terms.model_fields})

    @property
    def order(self) -> tuple[float, ...]:
        """The place among APIs that fit equally well: callable first, then the better terms."""
        return (not self.callable, self.asks, *self.terms.order)

    @property
    def signs(self) -> str:
        """All of it but what it lacks in single signs; ``LEGEND`` says what they mean."""
        able = "?" if self.callable and self.asks else "+" if self.callable else "-"
        signs = {
            "K": self.key == "set",
            "R": self.recorded,
            "O": self.offline,
            "L": self.calls_left == 0,
            "$": self.pricing == "PAID",
            "F": self.pricing == "FREEMIUM",
        }
        return able + "".join(sign for sign, holds in signs.items() if holds)

    @property
    def words(self) -> str:
        """What there is, in a few words."""
        parts = ["can be called" if self.callable else "cannot be called now"]
        parts += ["a person is asked first"] if self.asks else []
        parts += [f"needs {self.lacks}"] if self.lacks else []
        parts += ["key set"] if self.key == "set" else []
        parts += ["recorded"] if self.recorded else []
        parts += ["on this machine"] if self.offline else []
        parts += [f"last success {self.last_success}"] if self.last_success else []
        parts += [f"{self.calls_left} calls left today"] if self.calls_left is not None else []
        return ", ".join(parts)


def readiness(
    settings: Settings, store: Store, caller: Callable[[], Caller], apis: Sequence[Api]
) -> dict[str, Readiness]:
    """Return what each of some APIs has, by id. No key is looked at."""
    ids = [api.id for api in apis]
    terms = store.labels.terms(ids)
    recorded = _recorded(settings, ids)
    succeeded = _succeeded(settings, ids)
    try:
        ready = caller().ready
    except ToolsrvError as error:
        log.warning("what can be called is not known: %s (%s)", error.message, error.hint)
        return {}
    found = {}
    for api in apis:
        one: CallReadiness = ready(api)
        check = store.health_of(api.id)
        checked = check.checked_at if check is not None and check.standing == "alive" else ""
        replayed = settings.mode == "replay" and settings.simulate == "off"
        found[api.id] = Readiness(
            callable=api.id in recorded if replayed else one.callable,
            asks=one.asks and not replayed,
            key="" if replayed else one.key,
            lacks="" if replayed else plain(one.lacks),
            recorded=api.id in recorded,
            offline=one.offline,
            last_success=max(recorded.get(api.id, ""), succeeded.get(api.id, ""), checked),
            calls_left=one.calls_left,
            **terms.get(api.id, Terms()).model_dump(),
        )
    return found


def _recorded(settings: Settings, ids: Sequence[str]) -> dict[str, str]:
    from toolsrv_runtime.calls.recordings.storage import RECORDINGS_FILE, RecordingStore

    path = settings.data_dir / RECORDINGS_FILE
    if not path.exists():
        return {}
    try:
        with RecordingStore.open(path) as recordings:
            return recordings.latest(ids)
    except ToolsrvError as error:
        log.warning("what is recorded is not known: %s (%s)", error.message, error.hint)
        return {}


def _succeeded(settings: Settings, ids: Sequence[str]) -> dict[str, str]:
    from toolsrv.calls.caller import usage

    counts = usage(settings)
    try:
        return counts.last_successes(ids)
    finally:
        counts.close()
