"""Response schemas that a model made of example responses, with their provenance.

One stands in place of the schema of the API's source and never changes that one: removing it brings
the other back. It belongs to the content it was made of, as a check does: once an API's text changes it
no longer counts. Knows nothing of models; ``toolsrv_runtime.calls.key_selection`` makes the choice.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any

from pydantic import BaseModel, ConfigDict

from toolsrv_registry.api import RESPONSE_SCHEMA
from toolsrv_registry.storage.database import Database


class MadeSchema(BaseModel):
    """The result for one API: a schema, or None where one would save nothing.

    ``identity`` tells the model from others (a file's hash, an address), ``prompt`` the wording;
    ``version`` is toolsrv's, ``made_at`` UTC in ISO 8601. ``kept`` of ``keys`` key paths are in the
    schema. Tokens are those of the example response before and after, ``estimated`` where the model
    does not count.
    """

    model_config = ConfigDict(frozen=True)

    api_id: str
    content_hash: str
    response_schema: Any
    model: str
    identity: str
    prompt: str
    version: str
    made_at: str
    seed: int
    source: str
    keys: int
    kept: int
    tokens_before: int
    tokens_after: int
    estimated: bool = False


class ResponseSchemas:
    """The made schemas of a registry file. With n kept: ``put`` O(log n), ``of`` O(rows returned)."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def put(self, entry: MadeSchema) -> None:
        """Keep a result; an earlier one of the API goes. Raises DataError (no room) and BusyError."""
        row = entry.model_dump(mode="json")
        row["response_schema"] = json.dumps(row["response_schema"], ensure_ascii=False)
        with self._database.write() as db:
            db.execute("DELETE FROM response_schemas WHERE api_id = ?", [entry.api_id])
            db.execute(
                "INSERT INTO response_schemas VALUES (:api_id, :content_hash, :response_schema,"
                " :model, :identity, :prompt, :version, :made_at, :seed, :source, :keys, :kept,"
                " :tokens_before, :tokens_after, :estimated)",
                row,
            )

    def of(self, api_ids: Collection[str]) -> dict[str, MadeSchema]:
        """Return the kept results of some APIs by API id, also those of an earlier text."""
        rows = self._database.read(
            "SELECT * FROM response_schemas WHERE api_id IN (SELECT value FROM json_each(?))",
            [json.dumps(list(api_ids))],
        )
        return {
            row["api_id"]: MadeSchema.model_validate(
                {**row, "response_schema": json.loads(row["response_schema"])}
            )
            for row in rows
        }

    def of_source(self, api_id: str) -> Any:
        """Return the schema that the source of a visible API has, None without one."""
        rows = self._database.read("SELECT extra FROM visible WHERE id = ?", [api_id])
        return json.loads(rows[0]["extra"]).get(RESPONSE_SCHEMA) if rows else None

    def remove(self, api_ids: Collection[str]) -> int:
        """Remove the results of some APIs, so that their sources' schemas count; return how many."""
        with self._database.write() as db:
            return db.execute(
                "DELETE FROM response_schemas WHERE api_id IN (SELECT value FROM json_each(?))",
                [json.dumps(list(api_ids))],
            ).rowcount
