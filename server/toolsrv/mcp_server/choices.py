"""How a task is solved, where its caller knows better than the settings."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field


class SolveChoices(BaseModel):
    """What ``options`` of ``solve_task`` may say; None is left to the settings."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    continues: Annotated[
        str | None, Field(description="run_id whose answer and results the task goes on from.")
    ] = None
    strategy: Annotated[
        Literal["dfsdt", "dfs", "react", "cot", "plan"] | None,
        Field(
            description="Tree search, ranked, one chain, chains until one answers, or a tree for "
            "each subtask."
        ),
    ] = None
    switches: Annotated[
        list[Literal["plan", "progressive", "constraints", "self-check"]] | None,
        Field(description="Of a chat model; [] for none."),
    ] = None
    votes: Annotated[
        int | None, Field(ge=1, le=16, description="Solves at once; the most supported answer.")
    ] = None
    category: Annotated[str | None, Field(description="Only APIs of this category.")] = None
    max_calls: Annotated[int | None, Field(ge=1, le=10_000)] = None
    max_model_calls: Annotated[int | None, Field(ge=1, le=100_000)] = None
    max_tokens: Annotated[int | None, Field(ge=1, le=10_000_000)] = None
    width: Annotated[int | None, Field(ge=1, le=8)] = None
    depth: Annotated[int | None, Field(ge=3, le=96)] = None
    chains: Annotated[int | None, Field(ge=1, le=32, description="Most of cot.")] = None
    candidates: Annotated[int | None, Field(ge=1, le=32)] = None
    seed: Annotated[int | None, Field(ge=0, le=2**32 - 1)] = None
    verify: Annotated[
        bool | None, Field(description="Read the answer again; it may be rejected once.")
    ] = None
