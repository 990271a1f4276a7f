"""``toolsrv call``: one call of one API."""

from __future__ import annotations

import asyncio
import base64
import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from toolsrv.cli import consent, rim
from toolsrv.cli.options import (
    example,
    json_option,
    mode_option,
    simulate_option,
    simulator_option,
)
from toolsrv.cli.output import console, emit_json, note
from toolsrv.cli.session import Session, pass_session
from toolsrv.cli.stdin import read_text
from toolsrv.plain import plain
from toolsrv_registry.errors import ToolsrvError, UsageError
from toolsrv_runtime.calls.arguments import parse

if TYPE_CHECKING:
    from toolsrv.views import FileView
    from toolsrv.workbench import Workbench
    from toolsrv_registry.api import Api
    from toolsrv_runtime.calls.caller import CallResult
    from toolsrv_runtime.calls.spool import Spool


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
    simulator: str | None,
    as_json: bool,
) -> None:
    """Call the API with this ID.

    ARGUMENTS is one JSON object; "-" reads it from stdin. "@photo.png" stands for the bytes of that
    file where an argument takes bytes; they can also be given as a data: URL. Exit code 1 when the API does not
    answer with success, 2 when the call is refused before it is made. A call that may change
    something is shown and asked about on a terminal, and declined by any answer but yes; elsewhere
    it is refused, unless the setting "calls" allows it. A response that is no text (an image, a
    document) is never printed: it is saved, and said where, with its size and media type. Of a
    text or JSON of more than 4 MB only the beginning is printed, and the exit code is 1: --save
    writes all of it.
    """
    from toolsrv import call_files
    from toolsrv.cli.import_view import Bar
    from toolsrv.cli.interrupt import interruptible
    from toolsrv.uploads import add_files, anywhere, with_files
    from toolsrv.views import call_view

    given = parse(read_text() if arguments == "-" else arguments)
    bench = session.workbench(mode=mode, simulate=simulate, simulator=simulator)
    if save is not None:
        call_files.check_save(save, force=force)
    api = bench.api(api_id)
    given = with_files(api, add_files(api, given, files), anywhere)
    with Bar("saving", "bytes") as bar, interruptible():
        spool = replace(
            call_files.spool(bench.settings.data_dir, bench.settings.download_bytes, save),
            progress=bar.show,
        )
        result, left = asyncio.run(_call(bench, api, given, spool))
    result = _advised(result, saves=save is not None)
    if result.refused and not (as_json and result.consent):
        raise UsageError(result.error, hint=result.hint)
    saved, fault = _saved(result, save, force=force, data_dir=bench.settings.data_dir)
    if as_json:
        emit_json(call_view(result, None, saved).model_dump(mode="json"))
    else:
        _show(result, saved, left, is_saved=save is not None)
    if fault is not None:
        raise fault
    if not result.ok:
        context.exit(rim.USAGE if result.refused else rim.FAULT)


def _saved(
    result: CallResult, save: Path | None, *, force: bool, data_dir: Path
) -> tuple[tuple[FileView, ...], ToolsrvError | None]:
    """Write what a call brought; return where it went, and what prevented it.

    A text or a JSON value is written only where a person says so, and where the call succeeded.
    """
    from toolsrv.call_files import keep_file, keep_spooled, save_all, save_spooled
    from toolsrv.views import FileView, file_view
    from toolsrv_runtime.calls.attachment import Attachment

    files, large = result.files, result.spooled
    if large is not None:
        told = FileView(media_type=plain(large.media), bytes=large.size, name=plain(large.name))
        try:
            path = (
                keep_spooled(data_dir, large, result.api_id)
                if save is None
                else save_spooled(save, large, force=force, api_id=result.api_id)
            )
        except ToolsrvError as error:
            return (told,), error
        return (told.model_copy(update={"path": str(path)}),), None
    if save is not None and not files and result.ok:
        is_text = isinstance(result.response, str)
        text = result.response if is_text else _indented(result.response)
        content = text.encode(errors="backslashreplace")
        media = "text/plain" if is_text else "application/json"
        files = (Attachment(media=media, blob=base64.b64encode(content).decode("ascii")),)
    try:
        if save is None:
            paths = [keep_file(data_dir, one, result.api_id) for one in files]
        else:
            paths = save_all(save, files, force=force, api_id=result.api_id)
    except ToolsrvError as error:
        return tuple(file_view(one) for one in files), error
    views = zip(files, paths, strict=True)
    return tuple(file_view(one, path=str(path)) for one, path in views), None


def _show(
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
    from toolsrv_runtime.calls.hints import TOO_LARGE

    if result.kind != "too_large" or result.hint != TOO_LARGE:
        return result
    how = "for a larger file: toolsrv config set download_bytes BYTES"
    if not saves:
        how = "to have all of it in a file add --save FILE"
    return result.model_copy(update={"hint": f"{how}; or {result.hint}"})


def _indented(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)


async def _call(
    bench: Workbench, api: Api, arguments: dict[str, Any], spool: Spool
) -> tuple[CallResult, int | None]:
    """Return what a call came to, and how many its host has left today (None: no limit)."""
    try:
        result = await _answered(bench, api, arguments, spool)
        return result, bench.caller().calls_left(api)
    finally:
        await bench.aclose()


async def _answered(
    bench: Workbench, api: Api, arguments: dict[str, Any], spool: Spool
) -> CallResult:
    from toolsrv_runtime.calls.result import declined

    result = await bench.caller().call(api, arguments, spool=spool)
    if result.consent is None or not consent.can_ask():
        return result
    if not await consent.asked(result.consent):
        return declined(result)
    return await bench.caller().call(api, arguments, consent=result.consent, spool=spool)
