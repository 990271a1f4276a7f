"""``toolsrv recordings``: statistics, export, import, pull and pruning of recorded calls."""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack, closing
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from toolsrv.cli.catalog.imports import fetch_published, show_published
from toolsrv.cli.interrupt import interruptible
from toolsrv.cli.options import (
    FiniteRange,
    example,
    json_option,
    published_file_option,
    sha256_option,
    source_argument,
)
from toolsrv.cli.output import Bar, emit_json, note, table
from toolsrv.cli.session import Session, pass_session
from toolsrv.downloads import check_local
from toolsrv_registry.errors import DataError, NotFoundError, UsageError

if TYPE_CHECKING:
    from toolsrv_registry.api import Api
    from toolsrv_runtime.calls.recordings.storage import RecordingFilter, RecordingStore


@click.command(
    "pull",
    epilog=example(
        "toolsrv recordings pull stabletoolbench",
        "toolsrv recordings pull stabletoolbench --file server_cache.zip",
    ),
)
@source_argument
@click.option("--list", "listed", is_flag=True, help="List the recordings that have a short name.")
@published_file_option
@sha256_option
@json_option
@pass_session
def pull(
    session: Session,
    source: str | None,
    listed: bool,
    file: Path | None,
    sha256: str,
    as_json: bool,
) -> None:
    """Bring published recordings here and import them.

    The catalog comes first (`toolsrv catalog pull toolbench`): replies of APIs that no catalog has
    are left out. The file is resumed where the connection broke, checked by the SHA-256 that the
    hub tells before anything in it is read, and not unpacked. Afterwards the share of each
    category's APIs that have a recording is shown.
    """
    if listed:
        show_published("recordings", as_json=as_json)
        return
    if not source:
        raise UsageError("nothing to pull is named", hint="see toolsrv recordings pull --list")
    _, brought = fetch_published(session, source, "recordings", file=file, sha256=sha256)
    done: dict[str, Any] = {"path": str(brought.path)} | import_cache(session, brought.path)
    done["origin"] = brought.origin.model_dump(mode="json")
    with closing(_store(session)) as store:
        done["categories"] = shares(session, store)
    show_import(done, as_json=as_json)


def import_cache(session: Session, place: Path) -> dict[str, Any]:
    """Import StableToolBench's cache, a folder or a zip archive; return what that came to.

    Raises:
        NotFoundError: there is no cache at ``place``.
        DataError: it cannot be read.
    """
    from toolsrv_runtime.toolbench.cache import CacheReadout, cache_files, read_cache, zipped_cache

    apis = session.workbench().registry().store

    def find(api_id: str) -> Api | None:
        return apis.get_many([api_id]).get(api_id)

    seen = CacheReadout()
    with ExitStack() as stack:
        files = cache_files(place) if place.is_dir() else stack.enter_context(zipped_cache(place))
        store = stack.enter_context(closing(_store(session)))
        bar = stack.enter_context(Bar("importing", "files"))
        stack.enter_context(interruptible())
        added = store.add_all(read_cache(files, find, seen, bar.show))
    if seen.unknown:
        note(
            f"note: {len(seen.unknown):,} APIs are in no catalog, and their replies were left out; "
            "import their catalog first: toolsrv catalog pull toolbench, or catalog import PATH"
        )
    return {
        "files": len(files),
        "added": added,
        "judged": dict(seen.judged),
        "left_out": dict(seen.left_out),
        "unknown_apis": sorted(seen.unknown),
    }


def shares(session: Session, store: RecordingStore) -> dict[str, dict[str, int]]:
    """Return by category: APIs that are served, those with a recording, those with a real one.

    A real one came from the API, here or elsewhere; all others are simulated. The catalog that
    ships answers by itself and is left out.
    """
    from toolsrv_catalogs.offline import OFFLINE_CATALOG

    real, simulated = store.recorded_apis()
    registry = session.workbench().registry().store
    shipped = {api.id for api in registry.apis(catalog=OFFLINE_CATALOG)}
    found: dict[str, Counter[str]] = {}
    for api in registry.apis():
        if api.id in shipped:
            continue
        many = found.setdefault(api.category, Counter(apis=0, recorded=0, real=0))
        many["apis"] += 1
        many["recorded"] += api.id in real or api.id in simulated
        many["real"] += api.id in real
    return {category: dict(many) for category, many in sorted(found.items())}


def show_import(done: dict[str, Any], *, as_json: bool) -> None:
    """Show what an import came to, and the shares of each category if it has them."""
    if as_json:
        emit_json(done)
        return
    rows = []
    for name, value in done.items():
        if isinstance(value, dict) and name not in ("origin", "categories"):
            rows += [(f"{name.replace('_', ' ')}: {what}", many) for what, many in value.items()]
        elif not isinstance(value, dict | list):
            rows.append((name, value))
    table(("recordings", "value"), rows)
    if "categories" in done:
        show_shares(done["categories"])


def show_shares(categories: dict[str, dict[str, int]]) -> None:
    """Show which share of each category's APIs has a recording."""
    whole = {key: sum(one[key] for one in categories.values()) for key in _COLUMNS}
    table(
        ("category", "APIs#", "recorded#", "share#", "real#"),
        [
            (
                name,
                one["apis"],
                one["recorded"],
                f"{100 * one['recorded'] / max(1, one['apis']):.0f} %",
                one["real"],
            )
            for name, one in (categories | {"all": whole}).items()
        ],
    )


_COLUMNS = ("apis", "recorded", "real")


def _store(session: Session) -> RecordingStore:
    from toolsrv_runtime.calls.recordings.storage import RECORDINGS_FILE, RecordingStore

    return RecordingStore.open(session.load().settings.data_dir / RECORDINGS_FILE)


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
    """Manage recorded calls, which replay and simulation answer from.

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
        show_shares(by_category)


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
    from toolsrv_runtime.calls.recordings.storage import RecordingFilter, write_pack
    from toolsrv_runtime.toolbench.cache import write_cache

    path = path.expanduser()
    chosen = RecordingFilter(api_ids=frozenset(apis), provenances=frozenset(provenance))
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
    show_import({"path": str(path)} | done, as_json=as_json)


def _check_replaceable(path: Path, *, force: bool) -> None:
    """Raise UsageError where an export would go over anything but a pack that is to be replaced."""
    from toolsrv_runtime.calls.recordings.storage import is_pack

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
            check_local(path, sha256=sha256)
        show_import({"path": str(path)} | import_cache(session, path), as_json=as_json)
        return
    from toolsrv_runtime.calls.recordings.storage import read_pack

    with closing(_store(session)) as store, Bar("importing", "entries") as bar, interruptible():
        done = read_pack(path, store, sha256=sha256, progress=bar.show)
    show_import({"path": str(path)} | asdict(done), as_json=as_json)


def _is_zip_of_cache(path: Path) -> bool:
    from toolsrv_runtime.toolbench.cache import zipped_cache

    try:
        with zipped_cache(path):
            return True
    except (DataError, NotFoundError):
        return False


@recordings.command(epilog=example("toolsrv recordings prune --superseded --older-than 90"))
@api_option
@provenance_option
@click.option("--older-than", type=FiniteRange(min=0), metavar="DAYS", help="Only older ones.")
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
    show_import(done, as_json=as_json)


def _chosen(
    *,
    apis: tuple[str, ...],
    provenance: tuple[Any, ...],
    older_than: float | None,
    failed: bool,
    superseded: bool,
) -> RecordingFilter:
    from toolsrv_runtime.calls.recordings.storage import RecordingFilter

    before = ""
    if older_than is not None:
        try:
            before = (datetime.now(UTC) - timedelta(days=older_than)).isoformat()
        except OverflowError as error:
            raise UsageError(
                f"{older_than:g} days ago there was no calendar", hint="name fewer days"
            ) from error
    chosen = RecordingFilter(frozenset(apis), frozenset(provenance), before, failed, superseded)
    if chosen == RecordingFilter():
        raise UsageError(
            "prune needs to be told what to remove",
            hint="give --older-than, --failed, --superseded, --provenance or --api",
        )
    return chosen
