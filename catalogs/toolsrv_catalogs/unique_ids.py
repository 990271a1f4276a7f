"""Catalogs of one title kept apart: an id that another catalog has for something else is changed.

Of several catalogs with one id only the first is served. That is right for two editions of one API,
and hides an API that merely has the same title and name: that one gets the catalog's name into its
tool's part, ``Other/my_api/list`` of the catalog ``b`` becomes ``Other/my_api_b/list``. Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from toolsrv_catalogs.fields import unused
from toolsrv_registry import names
from toolsrv_registry.api import Api, Catalog

ApiAddress = tuple[str, str]
"""What a call of an API is: its method and its address."""


def with_unique_ids(
    catalog: Catalog, others: Mapping[str, Collection[ApiAddress]], own: Collection[str]
) -> tuple[Catalog, dict[str, str]]:
    """Return the catalog with ids that nothing else has, and the new ids by the old ones.

    ``others`` says which calls other catalogs have under an id; ``own`` are the ids that this
    catalog has in the store, which stay as they are where they were changed before.
    """
    taken = {api.id for api in catalog.apis}
    changed: dict[str, str] = {}
    for api in catalog.apis:
        wanted = _own_place(api.id, catalog.name)
        if wanted in own or _is_another(api, others.get(api.id, ())):
            changed[api.id] = unused(wanted, taken)
    if not changed:
        return catalog, {}
    tools = tuple(
        tool.model_copy(
            update={
                "apis": tuple(
                    api.model_copy(update={"id": changed.get(api.id, api.id)}) for api in tool.apis
                )
            }
        )
        for tool in catalog.tools
    )
    return Catalog(name=catalog.name, tools=tools), changed


def addresses(catalog: Catalog) -> list[str]:
    """Return all ids that the APIs of a catalog may get."""
    ids = [api.id for api in catalog.apis]
    return [*ids, *(_own_place(one, catalog.name) for one in ids)]


def _own_place(api_id: str, catalog: str) -> str:
    tool, _, name = api_id.rpartition("/")
    return f"{tool}_{names.readable_name(catalog) or 'catalog'}/{name}"


def _is_another(api: Api, others: Collection[ApiAddress]) -> bool:
    return bool(others) and (api.method, api.url) not in others
