"""Sources: every form of one catalog reads the same, and no archive does harm."""

from __future__ import annotations

import gzip
import io
import json
import os
import stat
import struct
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from toolsrv_catalogs import archive, sources
from toolsrv_catalogs.importer import ImportResult, read_catalog
from toolsrv_registry.errors import DataError, NotFoundError

_FORMS = [".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz", ".zip"]


def _tool(name: str, *apis: str) -> bytes:
    return json.dumps({"tool_name": name, "api_list": [{"name": api} for api in apis]}).encode()


FILES = {
    "toolenv/tools/Data/one.json": _tool("One", "ping", "pong"),
    "toolenv/tools/Weather/two.json": _tool("Two", "sun"),
    "toolenv/tools/Weather/two/api.py": b"raise SystemExit('this must never run')",
    "toolenv/response_examples/Data/one.json": (
        b'{"api_list": [{"name": "ping", "schema": {"a": "str"}}]}'
    ),
    "toolenv/response_examples/Weather/two.json": b"",
}
GOOD = ["Data/one/ping", "Data/one/pong", "Weather/two/sun"]
Members = list[tuple[tarfile.TarInfo, bytes]]


def _pack(path: Path, files: dict[str, bytes]) -> Path:
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
            for name, content in files.items():
                packed.writestr(name, content)
        return path
    mode: Any = {".gz": "w:gz", ".tgz": "w:gz", ".bz2": "w:bz2", ".xz": "w:xz"}.get(
        path.suffix, "w"
    )
    with tarfile.open(path, mode) as packed_tar:
        for name, content in files.items():
            _add(packed_tar, name, content)
    return path


def _add(packed: tarfile.TarFile, name: str, content: bytes = b"", **header: Any) -> None:
    member = tarfile.TarInfo(name)
    member.size = len(content)
    for key, value in header.items():
        setattr(member, key, value)
    packed.addfile(member, io.BytesIO(content))


def _lay(root: Path, files: dict[str, bytes]) -> Path:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return root


def _ids(reading: ImportResult) -> list[str]:
    return [api.id for api in reading.catalog.apis]


def _reasons(reading: ImportResult) -> dict[str, str]:
    return {one.path: refusal.reason for one in reading.files for refusal in one.refused}


@pytest.fixture(params=_FORMS)
def packed(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return _pack(tmp_path / f"mine{request.param}", FILES)


def test_every_archive_reads_as_the_folder_does(packed: Path, tmp_path: Path) -> None:
    folder = read_catalog(_lay(tmp_path / "folder", FILES) / "toolenv", name="mine")
    reading = read_catalog(packed)
    assert reading.catalog == folder.catalog
    assert _ids(reading) == GOOD
    assert reading.complete
    assert reading.passed == folder.passed == 1
    assert reading.catalog.name == "mine"
    one = reading.catalog.tools[0]
    assert one.api_extras == ({"response_schema": {"a": "str"}}, {})


def test_nothing_is_unpacked_to_disk(packed: Path, tmp_path: Path) -> None:
    before = sorted(tmp_path.rglob("*"))
    read_catalog(packed)
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("inside", ["toolenv", "toolenv/tools", "toolenv/tools/Weather", ""])
def test_any_folder_of_the_layout_will_do(tmp_path: Path, inside: str) -> None:
    reading = read_catalog(_lay(tmp_path / "x", FILES) / inside)
    assert set(_ids(reading)) <= set(GOOD)
    assert "Weather/two/sun" in _ids(reading)


def test_a_single_tool_file_takes_its_category_from_its_place(tmp_path: Path) -> None:
    _lay(tmp_path, FILES)
    path = tmp_path / "toolenv/tools/Weather/two.json"
    assert _ids(read_catalog(path)) == ["Weather/two/sun"]
    (loose := tmp_path / "loose").mkdir()
    (loose / "two.json").write_bytes(FILES["toolenv/tools/Weather/two.json"])
    assert _ids(read_catalog(loose / "two.json")) == ["Other/two/sun"]
    assert _ids(read_catalog(loose, category="Weather")) == ["Weather/two/sun"]


def test_progress_ends_at_the_size_of_the_source(packed: Path) -> None:
    told: list[tuple[int, int]] = []
    read_catalog(packed, progress=lambda done, total: told.append((done, total)))
    assert told
    assert all(0 <= done <= total for done, total in told)
    assert told == sorted(told)


# --- what is refused, while the rest is taken ----------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        "../tools/Data/evil.json",
        "toolenv/tools/../../../evil.json",
        "/etc/tools/Data/evil.json",
        "C:/tools/Data/evil.json",
        "toolenv\\..\\..\\tools\\Data\\evil.json",
    ],
)
@pytest.mark.parametrize("form", [".tar.gz", ".zip"])
def test_a_path_that_climbs_out_is_refused(tmp_path: Path, name: str, form: str) -> None:
    reading = read_catalog(_pack(tmp_path / f"x{form}", {name: _tool("Evil", "bad"), **FILES}))
    assert _ids(reading) == GOOD
    assert _reasons(reading)[name] == "its path leads out of the archive"


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        (tarfile.SYMTYPE, "is a link"),
        (tarfile.LNKTYPE, "is a link"),
        (tarfile.CHRTYPE, "is no regular file"),
        (tarfile.BLKTYPE, "is no regular file"),
        (tarfile.FIFOTYPE, "is no regular file"),
    ],
)
def test_links_and_devices_in_a_tar_are_refused(tmp_path: Path, kind: bytes, reason: str) -> None:
    path = tmp_path / "x.tar.gz"
    with tarfile.open(path, "w:gz") as packed:
        _add(packed, "tools/Data/odd.json", type=kind, linkname="/etc/passwd")
        for name, content in FILES.items():
            _add(packed, name, content)
    reading = read_catalog(path)
    assert _ids(reading) == GOOD
    assert _reasons(reading)["tools/Data/odd.json"] == reason


@pytest.mark.parametrize(
    ("kind", "reason"), [(stat.S_IFLNK, "is a link"), (stat.S_IFIFO, "is no regular file")]
)
def test_links_and_devices_in_a_zip_are_refused(tmp_path: Path, kind: int, reason: str) -> None:
    path = _pack(tmp_path / "x.zip", FILES)
    with zipfile.ZipFile(path, "a") as packed:
        member = zipfile.ZipInfo("tools/Data/odd.json")
        member.external_attr = (kind | 0o777) << 16
        packed.writestr(member, "/etc/passwd")
    reading = read_catalog(path)
    assert _ids(reading) == GOOD
    assert _reasons(reading)["tools/Data/odd.json"] == reason


def test_links_and_pipes_in_a_folder_are_refused(tmp_path: Path) -> None:
    secret = tmp_path / "secret.json"
    secret.write_bytes(_tool("Secret", "read"))
    root = _lay(tmp_path / "x", FILES)
    (root / "toolenv/tools/Data/link.json").symlink_to(secret)
    (root / "toolenv/tools/Linked").symlink_to(tmp_path)
    os.mkfifo(root / "toolenv/tools/Data/pipe.json")
    reading = read_catalog(root)
    assert _ids(reading) == GOOD
    assert _reasons(reading) == {
        "toolenv/tools/Data/link.json": "is a link",
        "toolenv/tools/Linked": "is a link",
        "toolenv/tools/Data/pipe.json": "is no regular file",
    }


class _Zeros(io.RawIOBase):
    """Endless zeros to read."""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        buffer[:] = bytes(len(buffer))
        return len(buffer)


def test_a_file_of_500_mb_is_refused_unread_wherever_it_lies(tmp_path: Path) -> None:
    huge = 500 * 1024 * 1024
    name = "toolenv/tools/Data/huge.json"
    root = _lay(tmp_path / "x", FILES)
    with (root / name).open("wb") as file:
        file.truncate(huge)
    path = tmp_path / "x.tar.gz"
    with (
        gzip.open(path, "wb", compresslevel=1) as squeezed,
        tarfile.open(fileobj=squeezed, mode="w|") as packed,
    ):
        member = tarfile.TarInfo(name)
        member.size = huge
        packed.addfile(member, io.BufferedReader(_Zeros(), 1 << 20))
        for other, content in FILES.items():
            _add(packed, other, content)
    for source in (root, path):
        reading = read_catalog(source)
        assert _ids(reading) == GOOD
        assert _reasons(reading)[name] == "500 MiB, at most 128 MiB are read"
    with pytest.raises(DataError) as raised:
        read_catalog(root / name)
    assert "500 MiB" in raised.value.message


def test_a_zip_bomb_is_refused(tmp_path: Path) -> None:
    bomb = {"toolenv/tools/Data/bomb.json": bytes(60 * 1024 * 1024)}
    reading = read_catalog(_pack(tmp_path / "x.zip", bomb | FILES))
    assert _ids(reading) == GOOD
    assert "zip bomb" in _reasons(reading)["toolenv/tools/Data/bomb.json"]


def test_a_zip_member_that_lies_about_its_size_is_refused(tmp_path: Path) -> None:
    name = "toolenv/tools/Data/liar.json"
    content = _tool("Liar", *(f"api {number}" for number in range(999)))
    path = _pack(tmp_path / "x.zip", {name: content, **FILES})
    whole = path.read_bytes()
    claimed = struct.pack("<L", len(content))
    assert whole.count(claimed) == 2
    path.write_bytes(whole.replace(claimed, struct.pack("<L", 100)))
    reading = read_catalog(path)
    assert _ids(reading) == GOOD
    assert "cannot be unpacked" in _reasons(reading)[name]


def test_an_encrypted_zip_member_is_refused(tmp_path: Path) -> None:
    path = _pack(tmp_path / "x.zip", FILES)
    with zipfile.ZipFile(path, "a") as packed:
        packed.writestr("tools/Data/locked.json", b"{}")
    whole = bytearray(path.read_bytes())
    for mark, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        whole[whole.rindex(mark) + offset] |= 1
    path.write_bytes(bytes(whole))
    reading = read_catalog(path)
    assert _ids(reading) == GOOD
    assert _reasons(reading)["tools/Data/locked.json"] == "is encrypted"


def test_a_tar_that_unpacks_without_end_is_left_at_the_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive, "TOTAL_LIMIT", 3 * 1024 * 1024)
    bomb = {"toolenv/tools/Weather/bomb.json": bytes(9 * 1024 * 1024)}
    reading = read_catalog(_pack(tmp_path / "x.tar.gz", FILES | bomb | {"z/late.json": b"{}"}))
    assert _ids(reading) == GOOD
    assert not reading.complete
    assert "not read" in _reasons(reading)[""]


def test_a_tar_header_that_claims_gigabytes_is_not_believed(tmp_path: Path) -> None:
    path = tmp_path / "x.tar"
    _pack(path, FILES)
    header = tarfile.TarInfo("pax")
    header.type = tarfile.XHDTYPE
    header.size = 8 * 1024**3 - 1
    whole = path.read_bytes().rstrip(b"\0")
    whole += bytes(-len(whole) % tarfile.BLOCKSIZE)
    path.write_bytes(whole + header.tobuf() + bytes(10_240))
    reading = read_catalog(path)
    assert _ids(reading) == GOOD
    assert "header" in _reasons(reading)[""]


def test_too_many_files_end_the_reading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "COUNT_LIMIT", 3)
    monkeypatch.setattr(sources, "COUNT_LIMIT", 3)
    for path in (
        _pack(tmp_path / "x.tar.gz", FILES),
        _pack(tmp_path / "x.zip", FILES),
        _lay(tmp_path / "x", FILES),
    ):
        assert not read_catalog(path).complete


def test_a_file_that_is_in_an_archive_twice_counts_once(tmp_path: Path) -> None:
    path = tmp_path / "x.tar.gz"
    name = "tools/Data/one.json"
    with tarfile.open(path, "w:gz") as packed:
        _add(packed, name, _tool("One", "ping"))
        _add(packed, name, _tool("One", "evil"))
    reading = read_catalog(path)
    assert _ids(reading) == ["Data/one/ping"]
    assert _reasons(reading)[name] == "is there twice; the first one counts"


# --- what cannot be read at all ------------------------------------------------------------------


@pytest.mark.parametrize("form", [".tar.gz", ".tar.bz2", ".tar.xz", ".zip", ".tar"])
@pytest.mark.parametrize("share", [0.3, 0.6, 0.9])
def test_a_cut_archive_is_refused_whole(tmp_path: Path, form: str, share: float) -> None:
    noise = {
        f"toolenv/tools/Data/n{n}.json": _tool(f"N{n}", os.urandom(200).hex()) for n in range(9)
    }
    path = _pack(tmp_path / f"x{form}", FILES | noise)
    whole = path.read_bytes()
    if form == ".tar":
        whole = whole.rstrip(b"\0")  # the end of a tar file is padding
    path.write_bytes(whole[: int(len(whole) * share) + 7])
    with pytest.raises(DataError) as raised:
        read_catalog(path)
    assert str(path) in raised.value.message
    assert raised.value.hint


@pytest.mark.parametrize("name", ["x.tar.gz", "x.zip", "x.tar", "x.json", "x.yaml", "x"])
@pytest.mark.parametrize(
    "content", [b"", b"nonsense", b"\x1f\x8b\x08nonsense", b"PK\x03\x04", b"{"]
)
def test_what_is_no_source_is_a_data_error(tmp_path: Path, name: str, content: bytes) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(DataError):
        read_catalog(path)


def test_a_path_to_nothing_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError):
        read_catalog(tmp_path / "none")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(DataError):
        read_catalog(tmp_path / "pipe")
    with pytest.raises(DataError):
        read_catalog(Path("\0"))


@pytest.fixture(scope="module", params=[".tar.gz", ".zip", ".tar"])
def whole(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return _pack(tmp_path_factory.mktemp("whole") / f"x{request.param}", FILES).read_bytes()


@given(data=st.data())
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_damage_does_more_than_a_data_error(
    data: st.DataObject, whole: bytes, tmp_path: Path
) -> None:
    damaged = bytearray(whole)
    for at in data.draw(st.lists(st.integers(0, len(whole) - 1), min_size=1, max_size=6)):
        damaged[at] = data.draw(st.integers(0, 255))
    path = tmp_path / "damaged"
    path.write_bytes(bytes(damaged))
    try:
        reading = read_catalog(path)
    except DataError:
        return
    assert len(_ids(reading)) == len(set(_ids(reading)))
