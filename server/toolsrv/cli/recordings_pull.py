"""Recordings that others published, brought and imported; what of each category they answer."""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from toolsrv.cli.catalog_pull import bring, show_published
from toolsrv.cli.import_view import Bar
from toolsrv.cli.interrupt import interruptible
from toolsrv.cli.options import (
    example,
    json_option,
    published_file_option,
    sha256_option,
    source_argument,
)
from toolsrv.cli.output import emit_json, note, table
from toolsrv.cli.session import Session, pass_session
from toolsrv_registry.errors import UsageError

if TYPE_CHECKING:
    from toolsrv_registry.api import Api
    from toolsrv_runtime.calls.recordings.store import RecordingStore


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
    _, brought = bring(session, source, "recordings", file=file, sha256=sha256)
    done: dict[str, Any] = {"path": str(brought.path)} | import_cache(session, brought.path)
    done["origin"] = brought.origin.model_dump(mode="json")
    with closing(_store(session)) as store:
        done["categories"] = shares(session, store)
    tell(done, as_json=as_json)


def import_cache(session: Session, place: Path) -> dict[str, Any]:
    """Import StableToolBench's cache, a folder or a zip archive; return what that came to.

    Raises:
        NotFoundError: there is no cache at ``place``.
        DataError: it cannot be read.
    """
    from toolsrv_runtime.calls.recordings.stabletoolbench_files import (
        Seen,
        cache_files,
        read_cache,
        zipped_cache,
    )

    apis = session.workbench().registry().store

    def find(api_id: str) -> Api | None:
        return apis.get_many([api_id]).get(api_id)

    seen = Seen()
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


def tell(done: dict[str, Any], *, as_json: bool) -> None:
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
        tell_shares(done["categories"])


def tell_shares(categories: dict[str, dict[str, int]]) -> None:
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
    from toolsrv_runtime.calls.recordings.store import RECORDINGS_FILE, RecordingStore

    return RecordingStore.open(session.load().settings.data_dir / RECORDINGS_FILE)
