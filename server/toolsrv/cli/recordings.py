"""``toolsrv recordings``: what is recorded, packed into one file, taken from one, and thinned out."""

from __future__ import annotations

from contextlib import closing
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from toolsrv.cli.import_view import Bar
from toolsrv.cli.interrupt import interruptible
from toolsrv.cli.options import example, json_option
from toolsrv.cli.output import emit_json, table
from toolsrv.cli.recordings_pull import import_cache, pull, shares, tell, tell_shares
from toolsrv.cli.session import Session, pass_session
from toolsrv.downloads import bring_local
from toolsrv_registry.errors import DataError, NotFoundError, UsageError

if TYPE_CHECKING:
    from toolsrv_runtime.calls.recordings.store import Chosen, RecordingStore

provenance_option = click.option(
    "--provenance",
    multiple=True,
    type=click.Choice(["live", "imported", "simulated"]),
    help="Only these: called here, from elsewhere, or made up. [repeatable]",
)
api_option = click.option(
    "--api", "apis", multiple=True, metavar="ID", help="Only calls of this API. [repeatable]"
)


@click.group(epilog=example("toolsrv recordings stats"))
def recordings() -> None:
    """Keep calls and what came of them, to be given again.

    --mode record (or the setting "mode") keeps what calls come to; --mode replay gives it again
    and reaches nobody. No key enters a recording.
    """


recordings.add_command(pull)


@recordings.command(epilog=example("toolsrv recordings stats --json"))
@click.option("--categories", is_flag=True, help="Say which share of each category is recorded.")
@json_option
@pass_session
def stats(session: Session, categories: bool, as_json: bool) -> None:
    """Say what is recorded."""
    with closing(_store(session)) as store:
        found = asdict(store.stats())
        by_category = shares(session, store) if categories else None
    if by_category is not None:
        found["categories"] = by_category
    if as_json:
        emit_json(found)
        return
    rows = [
        ("entries", f"{found['entries']:,}"),
        ("different calls", f"{found['calls']:,}"),
        ("APIs", f"{found['apis']:,}"),
        *((f"provenance {name}", f"{count:,}") for name, count in found["provenances"].items()),
        *((f"result {name}", f"{count:,}") for name, count in found["kinds"].items()),
        ("oldest", found["oldest"] or "unknown"),
        ("newest", found["newest"] or "unknown"),
        ("bytes", f"{found['bytes']:,}"),
    ]
    table(("recordings", "value"), rows)
    if by_category is not None:
        tell_shares(by_category)


@recordings.command(epilog=example("toolsrv recordings export calls.pack --provenance live"))
@click.argument("path", type=click.Path(path_type=Path))
@api_option
@provenance_option
@click.option(
    "--stabletoolbench",
    is_flag=True,
    help="Write StableToolBench's cache into the new folder PATH instead.",
)
@click.option("--force", is_flag=True, help="Replace an earlier export in one file.")
@json_option
@pass_session
def export(
    session: Session,
    path: Path,
    apis: tuple[str, ...],
    provenance: tuple[Any, ...],
    stabletoolbench: bool,
    force: bool,
    as_json: bool,
) -> None:
    """Write recordings into one file, with a manifest of hashes."""
    from toolsrv_runtime.calls.recordings.pack import write_pack
    from toolsrv_runtime.calls.recordings.stabletoolbench_files import write_cache
    from toolsrv_runtime.calls.recordings.store import Chosen

    path = path.expanduser()
    chosen = Chosen(api_ids=frozenset(apis), provenances=frozenset(provenance))
    if not stabletoolbench:
        _check_replaceable(path, force=force)
    with closing(_store(session)) as store, interruptible():
        if not store.count(chosen):
            raise NotFoundError(
                "there is nothing such to export",
                hint="see toolsrv recordings stats; record with --mode record",
            )
        if stabletoolbench:
            done: dict[str, Any] = {"replies": write_cache(path, store.entries(chosen))}
        else:
            packed = write_pack(path, store.entries(chosen), store.key_names())
            done = {"entries": packed.entries, "sha256": packed.sha256}
    tell({"path": str(path)} | done, as_json=as_json)


def _check_replaceable(path: Path, *, force: bool) -> None:
    """Raise UsageError where an export would go over anything but a pack that is to be replaced."""
    from toolsrv_runtime.calls.recordings.pack import is_pack

    if not path.is_file() and not path.is_symlink():
        return  # nothing, or what the writing itself refuses: a folder, a pipe
    if path.exists() and not is_pack(path):
        raise UsageError(
            f"{path} is there already, and is no pack of recordings",
            hint="name a new file: --force replaces only what an earlier export wrote",
        )
    if not force:
        raise UsageError(f"{path} is there already", hint="name a new file, or use --force")


@recordings.command(
    "import",
    epilog=example(
        "toolsrv recordings import calls.pack", "toolsrv recordings import tool_response_cache"
    ),
)
@click.argument("path", type=click.Path(path_type=Path))
@click.option("--sha256", default="", metavar="HEX", help="What the file's SHA-256 has to be.")
@json_option
@pass_session
def import_(session: Session, path: Path, sha256: str, as_json: bool) -> None:
    """Take recordings from a pack, or from StableToolBench's cache: its folder or its zip archive.

    A pack is taken whole or, where a hash or a size is not as it says, not at all. StableToolBench
    does not say which replies are real: what only a real service writes is imported, all else
    counts as simulated. Its APIs have to be in a catalog.
    """
    path = path.expanduser()
    if path.is_dir() and sha256:
        raise UsageError("--sha256 is for a file, and PATH is a folder", hint="leave it out")
    if path.is_dir() or _is_zip_of_cache(path):
        if sha256:
            bring_local(path, sha256=sha256)
        tell({"path": str(path)} | import_cache(session, path), as_json=as_json)
        return
    from toolsrv_runtime.calls.recordings.pack import read_pack

    with closing(_store(session)) as store, Bar("importing", "entries") as bar, interruptible():
        done = read_pack(path, store, sha256=sha256, progress=bar.show)
    tell({"path": str(path)} | asdict(done), as_json=as_json)


def _is_zip_of_cache(path: Path) -> bool:
    from toolsrv_runtime.calls.recordings.stabletoolbench_files import zipped_cache

    try:
        with zipped_cache(path):
            return True
    except (DataError, NotFoundError):
        return False


@recordings.command(epilog=example("toolsrv recordings prune --superseded --older-than 90"))
@api_option
@provenance_option
@click.option("--older-than", type=click.FloatRange(min=0), metavar="DAYS", help="Only older ones.")
@click.option("--failed", is_flag=True, help="Only calls that did not succeed.")
@click.option("--superseded", is_flag=True, help="Only those that a newer one stands in for.")
@click.option("--dry-run", is_flag=True, help="Say how many; remove none.")
@json_option
@pass_session
def prune(session: Session, /, dry_run: bool, as_json: bool, **given: Any) -> None:
    """Remove recordings. All conditions that are given must hold; one has to be given."""
    chosen = _chosen(**given)
    with closing(_store(session)) as store:
        count = store.count(chosen) if dry_run else store.prune(chosen)
        left = store.stats().entries
    done = {"removed": 0 if dry_run else count, "chosen": count, "left": left}
    tell(done, as_json=as_json)


def _chosen(
    *,
    apis: tuple[str, ...],
    provenance: tuple[Any, ...],
    older_than: float | None,
    failed: bool,
    superseded: bool,
) -> Chosen:
    from toolsrv_runtime.calls.recordings.store import Chosen

    before = ""
    if older_than is not None:
        try:
            before = (datetime.now(UTC) - timedelta(days=older_than)).isoformat()
        except OverflowError as error:
            raise UsageError(
                f"{older_than:g} days ago there was no calendar", hint="name fewer days"
            ) from error
    chosen = Chosen(frozenset(apis), frozenset(provenance), before, failed, superseded)
    if chosen == Chosen():
        raise UsageError(
            "prune needs to be told what to remove",
            hint="give --older-than, --failed, --superseded, --provenance or --api",
        )
    return chosen


def _store(session: Session) -> RecordingStore:
    from toolsrv_runtime.calls.recordings.store import RECORDINGS_FILE, RecordingStore

    return RecordingStore.open(session.load().settings.data_dir / RECORDINGS_FILE)
