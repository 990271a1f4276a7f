"""What a solve may be offered: APIs that can be called.

Imported catalogs are searched, described and checked, but a solve of this version calls the offline
catalog only; an API that the policy is going to refuse would cost a place and a step for nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from toolsrv_catalogs.offline import OFFLINE_CATALOG

if TYPE_CHECKING:
    from toolsrv_registry.api import Api
    from toolsrv_registry.registry import Registry
    from toolsrv_registry.retriever import SearchResult


class Offered:
    """The registry's retriever, kept to the catalog that can be called where there are others."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    def search(self, text: str, limit: int = 5, *, category: str | None = None) -> SearchResult:
        """Return the callable APIs that fit ``text``, best first."""
        enabled = {one.name for one in self._registry.store.catalogs() if one.enabled}
        catalog = OFFLINE_CATALOG if OFFLINE_CATALOG in enabled and len(enabled) > 1 else None
        return self._registry.retriever.search(text, limit, category=category, catalog=catalog)

    def affinity(self, text: str, apis: Sequence[Api]) -> list[float]:
        """Return how well each API fits ``text``, each in [0, 1]."""
        return self._registry.retriever.affinity(text, apis)
