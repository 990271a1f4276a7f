"""Find an API, read what it takes, and call it."""

from __future__ import annotations

from toolsrv import Toolbox

with Toolbox() as toolbox:
    found = toolbox.search("time difference between two cities", limit=3)
    for hit in found.hits:
        print(f"{hit.rank}. {hit.id} ({hit.score:.2f})")

    api = toolbox.describe("Location/world_clock/time_difference")
    for parameter in api.parameters:
        print(f"   {parameter.name}: {parameter.type}, {parameter.description}")

    result = toolbox.call(api.id, {"from_city": "London", "to_city": "Sydney"})
    if result.ok:
        print(result.response["summary"])
    else:  # a call that fails is a result, with its kind and what to do next
        print(f"{result.kind}: {result.error} ({result.hint})")
