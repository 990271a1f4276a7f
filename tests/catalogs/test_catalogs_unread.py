"""Refused files: what was read of them before stays, and what is truly gone does not."""

from __future__ import annotations

import json
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest

from toolsrv_catalogs.importer import ImportResult, read_catalog, refused_files, with_unread

BROKEN = b'{"tool_name": "A", "api_list": [{"na'


def _tool(name: str, *apis: str) -> dict[str, Any]:
    return {"tool_name": name, "api_list": [{"name": api} for api in apis]}


WHOLE: dict[str, Any] = {
    "tools/Data/a.json": _tool("A", "one", "two"),
    "tools/Data/b.json": _tool("B", "other"),
    "tools/Music/c.json": _tool("C", "sound"),
}


def _pack(path: Path, files: dict[str, Any], *, prefix: str = "") -> ImportResult:
    """Write files as a folder, a tar or a zip archive, and read it."""
    raw = {
        prefix + name: one if isinstance(one, bytes) else json.dumps(one).encode()
        for name, one in files.items()
    }
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w") as packed:
            for name, content in raw.items():
                packed.writestr(name, content)
    else:
        folder = path if path.suffix != ".tar" else path.with_suffix("")
        for name, content in raw.items():
            place = folder / name
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content)
        if path.suffix == ".tar":
            with tarfile.open(path, "w") as archive:
                archive.add(folder, arcname=".")
    return read_catalog(path, name="c")


def _ids(reading: ImportResult) -> list[str]:
    return [api.id for api in reading.catalog.apis]


@pytest.mark.parametrize(
    ("form", "prefix"), [("mine", ""), ("mine.tar", "toolenv/"), ("mine.zip", "toolenv/")]
)
@pytest.mark.parametrize("content", [BROKEN, b"", b"[1]"])
def test_the_apis_of_a_refused_file_stay_as_they_were(
    tmp_path: Path, form: str, prefix: str, content: bytes
) -> None:
    first = _pack(tmp_path / form, WHOLE, prefix=prefix)
    assert first.origins == tuple(prefix + name for name in WHOLE)
    again = _pack(tmp_path / form, WHOLE | {"tools/Data/a.json": content}, prefix=prefix)
    assert "Data/a/one" not in _ids(again)
    reading, kept = with_unread(again, first.catalog, first.origins)
    assert (reading.catalog, reading.origins) == (first.catalog, first.origins)
    assert kept == {prefix + "tools/Data/a.json": 2}


def test_a_file_that_is_gone_takes_its_apis_along(tmp_path: Path) -> None:
    first = _pack(tmp_path / "first", WHOLE)
    files = {name: one for name, one in WHOLE.items() if name != "tools/Data/a.json"}
    again = _pack(tmp_path / "again", files | {"tools/Music/c.json": BROKEN})
    reading, kept = with_unread(again, first.catalog, first.origins)
    assert _ids(reading) == ["Data/b/other", "Music/c/sound"]
    assert kept == {"tools/Music/c.json": 1}


def test_an_api_that_another_file_has_now_is_not_kept(tmp_path: Path) -> None:
    first = _pack(tmp_path / "first", WHOLE)
    moved = {"tools/Data/a.json": BROKEN, "tools/Data/d.json": _tool("A", "two")}
    again = _pack(tmp_path / "again", WHOLE | moved)
    reading, kept = with_unread(again, first.catalog, first.origins)
    assert _ids(reading) == ["Data/a/one", "Data/b/other", "Data/a/two", "Music/c/sound"]
    assert kept == {"tools/Data/a.json": 1}


def test_of_a_folder_that_is_refused_everything_stays(tmp_path: Path) -> None:
    first = _pack(tmp_path / "mine", WHOLE)
    folder = tmp_path / "mine" / "tools" / "Data"
    folder.rename(tmp_path / "elsewhere")
    folder.symlink_to(tmp_path / "elsewhere")
    again = read_catalog(tmp_path / "mine", name="c")
    assert _ids(again) == ["Music/c/sound"]
    reading, kept = with_unread(again, first.catalog, first.origins)
    assert reading.catalog == first.catalog
    assert kept == {"tools/Data/a.json": 2, "tools/Data/b.json": 1}


def test_where_a_tool_stood_may_be_unknown_and_a_file_that_was_read_is_not_refused(
    tmp_path: Path,
) -> None:
    first = _pack(tmp_path / "first", WHOLE)
    assert refused_files(first) == frozenset()
    again = _pack(tmp_path / "again", WHOLE | {"tools/Data/a.json": BROKEN})
    reading, kept = with_unread(again, first.catalog, ["", "", ""])
    assert (_ids(reading), kept) == (["Data/b/other", "Music/c/sound"], {})
    path = tmp_path / "twice.zip"
    with zipfile.ZipFile(path, "w") as packed:
        packed.writestr("tools/Data/a.json", json.dumps(_tool("A", "one")))
        with pytest.warns(UserWarning, match="Duplicate"):
            packed.writestr("tools/Data/a.json", json.dumps(_tool("A", "two")))
    twice = read_catalog(path, name="c")
    assert "twice" in twice.files[0].refused[0].reason
    assert refused_files(twice) == frozenset()
