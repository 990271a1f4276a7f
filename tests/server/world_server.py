"""A world in a thread of this process, on a loopback port, over a few APIs or a real catalog."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator, Mapping
from typing import Any

import httpx
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from toolsrv.api_server.serve import make_server
from toolsrv.loopback import listen, origin
from toolsrv_registry.api import Api, Parameter
from toolsrv_runtime.calls.caller import ApiOrigin, Caller

TOKEN = "the-token-of-these-tests"
HOST = "values.example"


def values_caller(
    values: Mapping[str, Any], gate: threading.Event | None = None, schema: Any = None
) -> Caller:
    """Return a caller whose one host answers ``/<name>`` with a value, ``/slow`` never.

    ``schema`` is what every API's responses are said to be worth.
    """

    async def give(request: Request) -> Response:
        name = request.path_params["name"]
        if name == "slow":
            if gate is not None:
                gate.set()
            await _for_ever()
        value = values[name]
        return PlainTextResponse(value) if isinstance(value, str) else JSONResponse(value)

    app = Starlette(routes=[Route("/{name}", give)])
    return Caller(
        transports={HOST: httpx.ASGITransport(app=app)},
        timeout=60,
        home=lambda _api: ApiOrigin(schema=schema),
    )


async def _for_ever() -> None:
    import asyncio

    await asyncio.Event().wait()


def value_apis(*names: str) -> dict[str, Api]:
    """Return one API of the tool Values for each name, by id; each takes an optional text."""
    return {
        f"Data/values/{name}": Api(
            id=f"Data/values/{name}",
            category="Data",
            tool="Values",
            name=name,
            url=f"https://{HOST}/{name}",
            optional=(Parameter(name="note"),),
        )
        for name in names
    }


@contextlib.contextmanager
def world_of(
    apis: Mapping[str, Api], caller: Caller, token: str | None = TOKEN, *, changes: bool = False
) -> Iterator[tuple[str, Any]]:
    """Serve these APIs; yield the address and the server."""
    listener = listen("127.0.0.1", 0)
    server = make_server(
        lambda ids: {one: apis[one] for one in ids if one in apis},
        caller,
        token,
        caller.aclose,
        changes=changes,
    )
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    where = origin("127.0.0.1", listener)
    thread.start()
    try:
        while not server.started:
            assert thread.is_alive()
            time.sleep(0.01)
        yield where, server
    finally:
        server.should_exit = True
        thread.join(timeout=60)
        assert not thread.is_alive()
