"""Catalogs that ship, and the domains of those in use. Opens nothing heavy."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from toolsrv_registry.errors import ToolsrvError

if TYPE_CHECKING:
    from pathlib import Path

    from toolsrv_registry.api import Catalog

NAMED_TOOLS = 60
"""Up to so many tools are named; beyond, their categories are."""

log = logging.getLogger(__name__)


def load_catalogs() -> tuple[Catalog, ...]:
    """Return the catalogs that ship; imported ones are in the store."""
    from toolsrv_catalogs.offline import load_offline_catalog

    return (load_offline_catalog(),)


def domains(folder: Path) -> tuple[str, ...]:
    """Return what the catalogs in use are about; ``folder`` is the data folder.

    The tools' names while they are few, else the categories. Of imported catalogs only
    categories of ToolBench's list: a client's model reads this, and their words are not ours.
    """
    imported, hidden = _imported(folder)
    tools = [tool for one in load_catalogs() if one.name not in hidden for tool in one.tools]
    few = len(tools) <= NAMED_TOOLS and not imported
    return tuple(sorted({tool.name if few else tool.category for tool in tools} | imported))


def rule_notes(folder: Path, calls: str) -> tuple[str, ...]:
    """Return a note for every rule that names a catalog which is not there (any more, or yet).

    ``calls`` is the setting, ``folder`` the data folder.
    """
    from toolsrv_runtime.calls.policy import parse_rules

    rules = parse_rules(calls)
    if not any(one.catalog or one.host for one in rules):
        return ()
    known = {one.lower(): one for one in _names(folder)}
    notes = []
    for rule in rules:
        said = f"note: the rule '{rule.verdict} {rule.method} {rule.place}'"
        if rule.catalog and rule.catalog.lower() not in known:
            names = ", ".join(sorted(known.values()))
            notes.append(f"{said} fits nothing now: no catalog has that name (there are: {names})")
        elif rule.host in known:
            meant = f"catalog:{known[rule.host]}"
            notes.append(f"{said} names a host; for the catalog of that name write {meant}")
    return tuple(notes)


def _names(folder: Path) -> set[str]:
    """Return the names of all catalogs, disabled ones too."""
    from toolsrv_registry.catalog_state import STORE_FILE
    from toolsrv_registry.storage.store import Store

    names = {one.name for one in load_catalogs()}
    if not (folder / STORE_FILE).exists():
        return names
    try:
        with Store.open(folder / STORE_FILE) as store:
            return names | {one.name for one in store.catalogs()}
    except ToolsrvError as error:  # told by the first command that needs the store
        log.warning("the catalogs cannot be listed: %s", error.message)
        return names


def _imported(folder: Path) -> tuple[set[str], set[str]]:
    """Return the known categories of imported catalogs, and the names of disabled catalogs."""
    from toolsrv_catalogs.fields import CATEGORIES
    from toolsrv_registry.catalog_state import STORE_FILE
    from toolsrv_registry.storage.store import Store

    shipped = {one.name for one in load_catalogs()}
    if not (folder / STORE_FILE).exists():
        return set(), set()
    try:
        with Store.open(folder / STORE_FILE) as store:
            catalogs = store.catalogs()
            hidden = {one.name for one in catalogs if not one.enabled}
            if all(one.name in shipped for one in catalogs if one.enabled):
                return set(), hidden
            return set(CATEGORIES & store.names.categories().keys()), hidden
    except ToolsrvError as error:  # told by the first request that needs the store
        log.warning("the catalogs cannot be listed: %s", error.message)
        return set(), set()
