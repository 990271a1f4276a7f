"""``toolsrv search``, ``describe`` and ``call``: find, inspect and call APIs."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from toolsrv.cli import error_handler, prompting
from toolsrv.cli.options import (
    category_option,
    example,
    json_option,
    mode_option,
    simulate_option,
    simulator_option,
)
from toolsrv.cli.output import console, emit_json, listing, note, table
from toolsrv.cli.prompting import read_text
from toolsrv.cli.session import Session, pass_session
from toolsrv.plain import compact_json, plain
from toolsrv_registry.errors import ToolsrvError, UsageError
from toolsrv_runtime.calls.arguments import parse

if TYPE_CHECKING:
    from toolsrv.operations import Files
    from toolsrv.toolbox import AsyncToolbox
    from toolsrv.views.apis import Detail, FileView
    from toolsrv.views.search import HitView, SearchView
    from toolsrv_runtime.calls.result import CallResult


@click.command(epilog=example('toolsrv search "sunrise in a city" --limit 3'))
@click.argument("text")
@click.option("--limit", type=click.IntRange(1, 100), default=5, show_default=True)
@click.option(
    "--offset", type=click.IntRange(0, 1_000), default=0, help="Leave out so many of the best."
)
@category_option
@click.option("--tool", metavar="NAME", help="Only APIs of this tool.")
@click.option("--catalog", metavar="NAME", help="Only APIs of this catalog.")
@click.option(
    "--detail",
    type=click.Choice(["names", "summary", "full"]),
    help="How much of each API.  [default: summary; full with --json]",
)
@click.option("--include-dead", is_flag=True, help="Also APIs that failed when last checked.")
@click.option("--callable", "callable_only", is_flag=True, help="Only APIs that can be called now.")
@json_option
@pass_session
def search(
    session: Session,
    text: str,
    limit: int,
    offset: int,
    category: str | None,
    tool: str | None,
    catalog: str | None,
    detail: Detail | None,
    include_dead: bool,
    callable_only: bool,
    as_json: bool,
) -> None:
    """Find the APIs that fit TEXT, best first; those of one tool stand together.

    Of APIs that fit equally well those come first that can be called now, then those that cost less
    and have served better.
    """
    with session.toolbox() as toolbox:
        view = toolbox.search(
            text,
            limit=limit,
            offset=offset,
            category=category,
            tool=tool,
            catalog=catalog,
            detail=detail or ("full" if as_json else "summary"),
            include_dead=include_dead,
            callable_only=callable_only,
        )
    if as_json:
        emit_json(view.model_dump(mode="json"))
    else:
        _show_hits(view, detail)


def _show_hits(view: SearchView, detail: Detail | None) -> None:
    for line in (view.degraded, *view.notes):
        if line:
            note(f"note: {line}")
    if view.nothing_fits and (view.hits or not view.hidden_behind):
        near = ", ".join(view.nearest_categories)
        note("note: nothing fits well" + (f"; nearest categories: {near}" if near else ""))
    if detail == "names":
        for hit in view.hits:
            parts = filter(None, (hit.id, hit.why, _needs(hit)))
            console().print("  ".join(parts), soft_wrap=True)
    elif view.hits:
        from toolsrv.views.readiness import legend

        columns = ("rank#", "score#", "API", "now", "description", "why")
        listing(columns, [_row(hit) for hit in view.hits], names=2)
        if any(hit.now for hit in view.hits):
            note(f"now: {legend(hit.now.signs for hit in view.hits if hit.now)}")
    if view.next_offset is not None:
        note(f"more: --offset {view.next_offset}")


def _row(hit: HitView) -> tuple[str, ...]:
    """Return a hit as a row of the table; what marks it stands under its id."""
    name = hit.id
    if hit.dead:
        name += f"\ndead: {hit.dead}"
    if needs := _needs(hit):
        name += f"\n{needs}"
    if hit.changed:
        name += "\nchanged: a newer text waits"
    about = hit.description
    if hit.parameters:
        about += "\n" + "\n".join(
            f"{one.name} ({one.type}{', required' * one.required})" for one in hit.parameters
        )
    reasons = hit.why
    if hit.similar:
        reasons += f"\n+{len(hit.similar)} similar: {', '.join(hit.similar[:SIMILAR_SHOWN])}"
    signs = hit.now.signs if hit.now else ""
    return str(hit.rank), f"{hit.score:.3f}", name, signs, about, reasons


def _needs(hit: HitView) -> str:
    return f"needs {hit.now.lacks}" if hit.now is not None and hit.now.lacks else ""


SIMILAR_SHOWN = 3


@click.command(epilog=example("toolsrv describe Location/world_clock/convert_time"))
@click.argument("api_id", metavar="ID")
@click.option("--catalog", metavar="NAME", help="As this catalog has it, hidden or not.")
@click.option("--schema", is_flag=True, help="Show the JSON Schema of its arguments alone.")
@json_option
@pass_session
def describe(
    session: Session, api_id: str, catalog: str | None, schema: bool, as_json: bool
) -> None:
    """Show the API with this ID: where a call goes, which key it needs, its parameters.

    What an argument holds stands below its description, a line each. --schema shows all of it as
    JSON Schema 2020-12; with --json it stands in the description.
    """
    from toolsrv.views.apis import allowed_words, call_line, check_line, describe_keys

    with session.toolbox() as toolbox:
        view = toolbox.describe(api_id, catalog=catalog, schema=schema)
    if view.hidden_behind:
        note(f"note: searches find and calls use the API of this id in {view.hidden_behind}")
    if as_json or schema:
        emit_json(view.model_dump(mode="json") if as_json else view.arguments_schema)
        return
    out = console()
    out.print(view.id, style="bold")
    out.print(f"{view.name}, of {view.tool}: {view.tool_description}".removesuffix(": "))
    out.print(view.description)
    out.print(call_line(view), soft_wrap=True)
    if view.keys:
        out.print(f"key: {describe_keys(view.keys)}", soft_wrap=True)
    if view.now is not None:
        out.print(f"now: {view.now.words}", soft_wrap=True)
        if terms := view.now.terms.words:
            out.print(f"terms: {terms}", soft_wrap=True)
    if view.check is not None:
        out.print(f"checked: {check_line(view.check)}")
    if view.parameters:
        rows = [
            (
                one.name,
                one.type,
                "yes" if one.required else "",
                ", ".join(
                    compact_json(x) for x in (one.default, one.example) if x not in ("", None)
                ),
                "\n".join([f"{one.description} {allowed_words(one)}".strip(), *one.fields]).strip(),
            )
            for one in view.parameters
        ]
        table(("parameter", "type", "required", "default or example", "description"), rows)
    arguments = compact_json(view.example).replace("'", "'\\''")
    out.print(f"toolsrv call {view.id} '{arguments}'", style="dim")


@click.command(
    epilog=example(
        "toolsrv call Location/world_clock/time_difference "
        '\'{"from_city": "London", "to_city": "Sydney"}\''
    )
)
@click.argument("api_id", metavar="ID")
@click.argument("arguments", metavar="ARGUMENTS", default="{}")
@click.option(
    "--file",
    "files",
    multiple=True,
    metavar="NAME=PATH",
    help="An argument that is a file: its bytes, name and media type; again for a list of them.",
)
@click.option(
    "--save",
    type=click.Path(path_type=Path),
    metavar="FILE|FOLDER",
    help="Write the response there, whole however large (setting download_bytes): bytes as they "
    "came, text and JSON in UTF-8. [default: bytes go to the folder files in the data folder]",
)
@click.option("--force", is_flag=True, help="Let --save replace a file that is there.")
@mode_option
@simulate_option
@simulator_option
@json_option
@click.pass_context
@pass_session
def call(
    session: Session,
    context: click.Context,
    api_id: str,
    arguments: str,
    files: tuple[str, ...],
    save: Path | None,
    force: bool,
    mode: str | None,
    simulate: str | None,
    as_json: bool,
) -> None:
    """Call the API with this ID.

    ARGUMENTS is one JSON object; "-" reads it from stdin. "@photo.png" stands for the bytes of that
    file where an argument takes bytes; they can also be given as a data: URL. Exit code 1 when the
    API does not answer with success, 2 when the call is refused before it is made. A call that may
    change something is shown and asked about on a terminal, and declined by any answer but yes;
    elsewhere it is refused, unless the setting "calls" allows it. A response that is no text (an
    image, a document) is never printed: it is saved, and said where, with its size and media type.
    Of a text or JSON of more than 4 MB only the beginning is printed, and the exit code is 1:
    --save writes all of it.
    """
    from toolsrv.calls.files import UnsavedError
    from toolsrv.calls.uploads import named_paths
    from toolsrv.cli.interrupt import interruptible
    from toolsrv.cli.output import Bar
    from toolsrv.views.apis import call_view

    given = parse(read_text() if arguments == "-" else arguments)
    toolbox = session.async_toolbox(mode=mode, simulate=simulate)
    named = named_paths(files)
    fault: UnsavedError | None = None
    left: int | None = None
    with Bar("saving", "bytes") as bar, interruptible():
        try:
            work = _call(toolbox, api_id, given, named, save, force=force, progress=bar.show)
            result, left = asyncio.run(work)
        except UnsavedError as error:
            fault, result = error, error.result
    result = _advised(result, saves=save is not None)
    if result.refused and not (as_json and result.consent):
        raise UsageError(result.error, hint=result.hint)
    saved = _files(result)
    if as_json:
        emit_json(call_view(result, None, saved).model_dump(mode="json"))
    else:
        _show_result(result, saved, left, is_saved=save is not None)
    if fault is not None:
        raise fault
    if not result.ok:
        context.exit(error_handler.USAGE if result.refused else error_handler.FAULT)


def _files(result: CallResult) -> tuple[FileView, ...]:
    """Return what a call brought as bytes: where each file was saved, or that it was not."""
    from toolsrv.views.apis import FileView, file_view

    if result.kept:
        names = [plain(one.name) for one in result.files]
        names += [""] * (len(result.kept) - len(names))
        return tuple(
            FileView(media_type=plain(one.media_type), bytes=one.bytes, name=name, path=one.path)
            for one, name in zip(result.kept, names, strict=True)
        )
    if (large := result.spooled) is not None:
        return (FileView(media_type=plain(large.media), bytes=large.size, name=plain(large.name)),)
    return tuple(map(file_view, result.files))


def _show_result(
    result: CallResult, saved: tuple[FileView, ...], left: int | None, *, is_saved: bool
) -> None:
    note(f"{result.api_id}: status {result.status}, {result.source}, {result.seconds:.2f} s")
    if left is not None and result.source == "live":
        note(f"{left} calls left to its host today (calls_per_day)")
    for name, value in result.headers.items():
        note(f"{name}: {plain(value)}")
    text = result.response if isinstance(result.response, str) else _indented(result.response)
    if result.response not in ("", None) and not (saved and is_saved):
        console().print(plain(text), soft_wrap=True)
    for one in saved:
        if one.path:
            note(f"saved: {one.path} ({one.bytes:,} bytes, {one.media_type})")
    if result.error:
        note(f"error: {result.error}")
    if result.error and result.hint:
        note(f"hint: {result.hint}")


def _advised(result: CallResult, *, saves: bool) -> CallResult:
    """Return a result that says how a person gets all of a response that was too large."""
    from toolsrv_runtime.calls.credentials import TOO_LARGE

    if result.kind != "too_large" or result.hint != TOO_LARGE:
        return result
    how = "for a larger file: toolsrv config set download_bytes BYTES"
    if not saves:
        how = "to have all of it in a file add --save FILE"
    return result.model_copy(update={"hint": f"{how}; or {result.hint}"})


def _indented(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)


async def _call(
    toolbox: AsyncToolbox,
    api_id: str,
    arguments: dict[str, Any],
    files: Files,
    save: Path | None,
    *,
    force: bool,
    progress: Callable[[int, int | None], None],
) -> tuple[CallResult, int | None]:
    """Return what a call came to, and how many its host has left today (None: no limit)."""
    async with toolbox:
        result = await toolbox.call(
            api_id,
            arguments,
            files=files,
            save_to=save,
            force=force,
            confirm=prompting.ask_consent if prompting.can_ask() else None,
            any_path=True,
            progress=progress,
        )
        if result.source != "live":
            return result, None
        with contextlib.suppress(ToolsrvError):  # the call is made: its result counts
            now = (await toolbox.describe(api_id)).now
            return result, now.calls_left if now is not None else None
        return result, None
