"""MCP client: servers whose tools are APIs of the catalog.

``McpServer`` says how a server is reached and which secrets it needs. It holds no secret. Loads no
MCP library.
"""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict

SecretLookup = Callable[[str], str]
"""From a key's name to the secret, ``""`` when there is none. May block; called in threads."""

ADDRESS_PREFIX = "mcp:"
QUERY_MARK = "?"
"""Stands for the query of a server's address, which often holds a key, among its secrets."""


class McpServer(BaseModel):
    """A server: a command that is started, or an address.

    ``env`` and ``headers`` are names; their values are secrets, kept as ``key_name`` says, and so
    is the address's query where ``has_query``.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    command: str = ""
    args: tuple[str, ...] = ()
    cwd: str = ""
    env: tuple[str, ...] = ()
    url: str = ""
    headers: tuple[str, ...] = ()
    has_query: bool = False

    @property
    def place(self) -> str:
        """The command line or the address, for people."""
        return self.url or " ".join((self.command, *self.args))

    @property
    def host(self) -> str:
        """The address's host, with its port where that is named; ``""`` for a command."""
        return urlsplit(self.url).netloc.lower() if self.url else ""

    @property
    def secrets(self) -> tuple[str, ...]:
        """The names of the values that it needs."""
        return (*self.env, *self.headers, *((QUERY_MARK,) if self.has_query else ()))

    def key_name(self, secret: str) -> str:
        """Return the name under which a value of it is kept."""
        return f"{ADDRESS_PREFIX}{self.name}/{secret}"
