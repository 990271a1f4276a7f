"""Views of a search: hits with reasons, the query as read, and left-out hits.

One typed shape for ``--json`` and for MCP; text from catalogs is made plain here. Nothing here
searches.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, Field

from toolsrv.plain import one_line, plain
from toolsrv.views.apis import SUMMARY_LIMIT, Detail, ParameterView, parameter_views
from toolsrv.views.readiness import Readiness
from toolsrv_registry.functions import parameter_keys

if TYPE_CHECKING:
    from toolsrv_registry.search.retriever import Hit, SearchResult

CLAUSE_LIMIT = 80


class HitView(BaseModel):
    """An API that a search found."""

    model_config = ConfigDict(frozen=True)

    id: str = Field(description="Pass it to describe_apis or call_api as it is.")
    rank: int = Field(description="Its place among all hits; 1 fits best.")
    score: float = Field(description="Higher fits better; comparable within one search only.")
    why: str = Field(default="", description="What the match rests on.")
    description: str = ""
    required: tuple[str, ...] = Field(default=(), description="Required parameters.")
    parameters: tuple[ParameterView, ...] = ()
    similar: tuple[str, ...] = Field(
        default=(), description="Near-duplicates of other tools, not listed themselves."
    )
    more_similar: int = Field(default=0, description="Further near-duplicates.")
    catalog: str = ""
    changed: bool = Field(
        default=False, description="A newer text of this API waits to be accepted."
    )
    dead: str = Field(default="", description="How its last check failed; empty: it did not.")
    now: Readiness | None = Field(
        default=None, description="Whether a call can work now, and what it costs."
    )


class SearchView(BaseModel):
    """The APIs that fit a query: those of one tool together, the tool of the best hit first."""

    model_config = ConfigDict(frozen=True)

    query: str
    hits: tuple[HitView, ...]
    nothing_fits: bool = Field(description="True: no API fits well; the hits are only the nearest.")
    nearest_categories: tuple[str, ...]
    offset: int = 0
    next_offset: int | None = Field(
        default=None, description="The offset of the next page; null: this is the last."
    )
    total: int | None = Field(
        default=None, description="How many hits there are; null while there is a next page."
    )
    dead_left_out: int = Field(
        default=0, description="APIs left out because they failed when they were last checked."
    )
    hidden_behind: dict[str, int] = Field(
        default={},
        description="APIs of the named catalog that are not found, because another one has their"
        " ids: catalog -> how many.",
    )
    searched: str = Field(
        default="", description="What was searched, when it is not the query as it stands."
    )
    language: str = Field(default="", description="The query's language, when it is not English.")
    notes: tuple[str, ...] = Field(default=(), description="What to know about this search.")
    degraded: str = Field(description="Why the vectors were not used; empty when all is well.")
    next_step: str = Field(default="", description="What to do now.")


def search_view(
    result: SearchResult, detail: Detail, readiness: Mapping[str, Readiness] | None = None
) -> SearchView:
    """Return the view of a search, with as much of each hit as ``detail`` asks for.

    ``readiness`` say by id what each API has for a call now.
    """
    known = readiness or {}
    reading = result.reading
    return SearchView(
        query=result.query,
        hits=tuple(
            hit_view(hit, detail, reading.text, known.get(hit.api.id)) for hit in result.hits
        ),
        nothing_fits=result.nothing_fits,
        nearest_categories=tuple(result.nearest_categories),
        offset=result.offset,
        next_offset=result.next_offset,
        total=result.total,
        dead_left_out=result.dead_left_out,
        hidden_behind=dict(result.hidden_behind),
        searched="" if reading.text == result.query else plain(reading.text),
        language=reading.language,
        notes=tuple(notes(result)),
        degraded=plain(result.degraded),
    )


def hit_view(
    hit: Hit, detail: Detail, searched: str, readiness: Readiness | None = None
) -> HitView:
    """Return the view of a hit; ``names`` tells only which, where and why."""
    told: dict[str, Any] = {}
    if detail != "names":
        text = hit.api.description or hit.api.tool_description
        keys = parameter_keys(hit.api).items()
        told["description"] = plain(text) if detail == "full" else one_line(text, SUMMARY_LIMIT)
        told["required"] = tuple(name for name, one in keys if one in hit.api.required)
    if detail == "full":
        told["parameters"] = parameter_views(hit.api)
    return HitView(
        id=hit.api.id,
        rank=hit.rank,
        score=round(hit.score, 4),
        why=match_reason(hit, searched),
        similar=hit.similar,
        catalog=plain(hit.catalog),
        changed=hit.changed,
        dead=plain(hit.dead),
        now=readiness,
        **told,
    )


def match_reason(hit: Hit, searched: str) -> str:
    """Say in a few words what a hit rests on: words, meaning, and the need that it serves."""
    parts = []
    if hit.matched_words:
        parts.append("words: " + ", ".join(hit.matched_words))
    if hit.similarity:
        parts.append(f"meaning: {hit.similarity:.2f}")
    if hit.clause != searched:
        parts.append(f"for: {one_line(hit.clause, CLAUSE_LIMIT)}")
    return "; ".join(parts)


def notes(result: SearchResult) -> list[str]:
    """Return in sentences what was searched instead of the query, and what was left out."""
    reading, said = result.reading, []
    if reading.corrected:
        pairs = ", ".join(f"{plain(right)} ({plain(wrong)})" for wrong, right in reading.corrected)
        said.append(f"searched for: {pairs}")
    if reading.language:
        said.append(_language_note(reading.language, reading.text, done=reading.translated))
    if result.offset and result.total and not result.hits:
        said.append(f"no more hits; there are {result.total}")
    if result.dead_left_out:
        count = result.dead_left_out
        said.append(
            f"{count} API{'s' * (count != 1)} left out: dead when last checked; "
            "include_dead shows them"
        )
    if behind := result.hidden_behind:
        many = ", ".join(f"{count} behind {plain(other)}" for other, count in behind.items())
        said.append(
            f"APIs of this catalog are hidden, because an earlier one has their ids: {many}; "
            "without the catalog filter the earlier one's are found"
        )
    if any(hit.changed for hit in result.hits):
        said.append(
            "changed: a newer text waits until it is accepted (toolsrv catalog accept); "
            "the accepted one is shown"
        )
    return said


def _language_note(language: str, searched: str, *, done: bool) -> str:
    note = f"the catalog is in English and the query seems to be {language}"
    if done:
        return f"{note}; searched for: {one_line(searched, 200)}"
    return f"{note}, of which nothing could be read: ask in English"
