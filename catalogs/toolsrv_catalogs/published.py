"""Data that others published and that is pulled by a short name: the table in ``published.toml``.

Says where a file is, and what is known of it beforehand. Fetches nothing.
"""

from __future__ import annotations

import functools
import tomllib
from importlib.resources import files
from typing import Literal

from pydantic import BaseModel, ConfigDict, TypeAdapter

from toolsrv_registry.errors import NotFoundError

What = Literal["catalog", "recordings"]


class Published(BaseModel):
    """A published file.

    ``repo`` is a data set of the hub, ``""`` where the file has to be brought by hand from
    ``page``. ``size_bytes`` is None, ``sha256`` and ``licence`` are ``""`` where the table does not
    know them; then the hub is asked. ``within`` is the folder that alone is read.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    what: What
    title: str
    repo: str = ""
    file: str = ""
    revision: str = "main"
    size_bytes: int | None = None
    sha256: str = ""
    licence: str = ""
    page: str = ""
    within: str = ""


@functools.cache
def published() -> tuple[Published, ...]:
    """Return the table in its order."""
    text = files("toolsrv_catalogs").joinpath("published.toml").read_text("utf-8")
    return tuple(TypeAdapter(list[Published]).validate_python(tomllib.loads(text)["source"]))


def is_published(name: str) -> bool:
    """Whether the table has a source of that name."""
    return any(one.name == name for one in published())


def named(name: str, what: What) -> Published:
    """Return the source of that name. Raises NotFoundError, which names those that there are."""
    known = [one for one in published() if one.what == what]
    for one in known:
        if one.name == name:
            return one
    raise NotFoundError(
        f"no published {what} has the name {name!r}",
        hint=f"there are: {', '.join(one.name for one in known)}; or give a file or a URL",
    )
