"""Files on the web page: chosen in a form and sent with a call, and brought by one to download."""

from __future__ import annotations

import hashlib
import json
import os
import re
import runpy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from click.testing import Result
from python_multipart.multipart import parse_options_header

from toolsrv.runs.journal import open_journal
from toolsrv.settings import load
from toolsrv.web.security import Session
from toolsrv.web.uploads import MOST_UPLOAD
from toolsrv_runtime import outcome as out
from toolsrv_runtime.calls.serialization import FILE_LIMIT
from toolsrv_runtime.options import SolveOptions

HERE = Path(__file__).parent
WEB = runpy.run_path(str(HERE / "web_client.py"))
HOST = runpy.run_path(str(HERE / "file_host.py"))
Browser, words, PNG = WEB["Browser"], WEB["words"], HOST["PNG"]
SEND, STORE, PICTURE = (f"Other/box/{one}" for one in ("send", "store", "picture"))
LARGE = os.urandom(1_000) * 3_000
pytestmark = pytest.mark.usefixtures("no_keyring")


@dataclass
class Box:
    """A browser at a server whose catalog has an API of files, and the API's host."""

    served: Any
    browser: Any
    host: Any
    folder: Path
    spools: Path

    def call(self, api_id: str, files: list[tuple[str, Any]], /, **fields: str) -> httpx.Response:
        """Send the form of an API as its page does, with files."""
        data = {"csrf": self.browser.csrf, "id": api_id, **fields}
        return self.post("/ui/call", data, files, {"Origin": self.browser.origin})

    def post(
        self, path: str, data: dict[str, str], files: list[tuple[str, Any]], headers: dict[str, str]
    ) -> httpx.Response:
        empty = [("file.none", ("", b"", "application/octet-stream"))]  # so it is always multipart
        answer: httpx.Response = self.browser.post(
            path, data=data, files=[*files, *empty], headers=headers, follow_redirects=True
        )
        return answer

    def spooled(self) -> list[int]:
        """Return the sizes of the server's open files without a name."""
        held = Path(f"/proc/{self.browser.process.pid}/fd")
        sizes = []
        for one in held.iterdir():
            try:
                target = str(one.readlink())
                if str(self.spools) in target:
                    sizes.append(one.stat().st_size)
            except OSError:
                continue
        return sizes


@pytest.fixture
def box(
    ready_dir: Path, run: Callable[..., Result], start_http: Callable[..., Any], tmp_path: Path,
    request: pytest.FixtureRequest,
) -> Iterator[Box]:  # fmt: skip
    """Its calls need consent where the test says so."""
    spools = tmp_path / "spools"
    spools.mkdir()
    with HOST["serving"]() as host:
        (tmp_path / "api.json").write_text(json.dumps(host.document))
        own = host.url.removeprefix("http://")
        run("config", "set", "own_hosts", own)
        done = run("catalog", "import", str(tmp_path / "api.json"), "--name", "box", "--no-index")
        assert done.exit_code == 0, done.stderr
        given = {
            "TOOLSRV_DATA_DIR": str(ready_dir),
            "TOOLSRV_OWN_HOSTS": own,
            "TMPDIR": str(spools),
        }
        if not getattr(request, "param", False):
            given["TOOLSRV_CALLS"] = "allow POST 127.0.0.1"
        served = start_http(given)
        with Browser(served) as browser:
            yield Box(served, browser, host, ready_dir, spools)


needs_consent = pytest.mark.parametrize("box", [True], indirect=True)


def parts(sent: tuple[str, bytes]) -> list[tuple[bytes, bytes | None, bytes, bytes]]:
    """Return name, file name, media type and content of the parts of a form."""
    boundary = b"--" + parse_options_header(sent[0])[1][b"boundary"]
    found = []
    for one in sent[1].split(boundary)[1:-1]:
        head, _, content = one.removeprefix(b"\r\n").removesuffix(b"\r\n").partition(b"\r\n\r\n")
        headers = dict(line.split(b": ", 1) for line in head.split(b"\r\n"))
        about = parse_options_header(headers[b"Content-Disposition"])[1]
        media = headers.get(b"Content-Type", b"")
        found.append((about[b"name"], about.get(b"filename"), media, content))
    return found


def test_chosen_files_are_sent_with_their_names_and_types_and_nothing_stays(box: Box) -> None:
    page = box.browser.get("/ui/api", params={"id": SEND}).text
    assert 'enctype="multipart/form-data"' in page
    assert f"at most {FILE_LIMIT:,} bytes" in words(page)
    assert f"at most {MOST_UPLOAD:,} bytes" in words(page)
    assert re.search(r'type="file"[^>]* name="file.papers"[^>]* multiple', page)
    files = [
        ("file.photo", ("naïve photo.png", PNG, "image/png")),
        ("file.papers", ("C:\\mine\\a.csv", b"a,b\r\n1,2\r\n", "text/csv")),
        ("file.papers", ("../b.pdf", LARGE, "application/pdf")),
    ]
    done = box.call(SEND, files, **{"arg.note": "two\r\nlines", "arg.photo": " "})
    assert (done.status_code, "HTTP 200" in words(done.text)) == (200, True), words(done.text)
    assert sorted(parts(box.host.seen[0])) == [
        (b"note", None, b"", b"two\nlines"),
        (b"papers", b"a.csv", b"text/csv", b"a,b\r\n1,2\r\n"),
        (b"papers", b"b.pdf", b"application/pdf", LARGE),
        (b"photo", "naïve photo.png".encode(), b"image/png", PNG),
    ]
    assert "sent last: a.csv, b.pdf" in words(done.text)
    assert (box.spooled(), list(box.spools.iterdir())) == ([], [])
    whole = box.call(STORE, [("file.body", ("x.bin", LARGE, ""))])
    assert box.host.seen[1][1] == LARGE, words(whole.text)


def test_a_text_can_be_sent_instead_of_a_file_but_not_beside_it(box: Box) -> None:
    typed = box.call(STORE, [], **{"arg.body": "as text"})
    assert box.host.seen[0][1] == b"as text", words(typed.text)
    several = box.call(SEND, [], **{"arg.papers": '["one", "two"]'})
    assert [one[3] for one in parts(box.host.seen[1])] == [b"one", b"two"], words(several.text)
    both = box.call(STORE, [("file.body", ("a", b"1", ""))], **{"arg.body": "2"})
    two = box.call(STORE, [("file.body", (name, b"1", "")) for name in "ab"])
    path = box.call(STORE, [], **{"arg.body": "@/etc/hostname"})
    for refused, said in ((both, "a file and a text"), (two, "2 files"), (path, "is not read")):
        assert (refused.status_code, said in words(refused.text)) == (400, True)
    assert len(box.host.seen) == 2


def token(page: str) -> str:
    found = re.search(r'name="call" value="([^"]+)"', page)
    assert found is not None, words(page)
    return found[1]


@needs_consent
@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="no list of open files here")
@pytest.mark.parametrize("say", ["yes", "no"])
def test_a_file_waits_on_disk_for_consent_and_is_gone_after_it(box: Box, say: str) -> None:
    asked = box.call(SEND, [("file.photo", ("big.png", LARGE, "image/png"))]).text
    digest = hashlib.sha256(LARGE).hexdigest()
    assert f"({len(LARGE):,} bytes, SHA-256 {digest})" in words(asked)
    assert "big.png" in words(asked)
    assert box.spooled() == [len(LARGE)]
    assert list(box.spools.iterdir()) == []  # it has no name that anybody could open
    done = box.browser.send_form("/ui/consent", call=token(asked), say=say)
    expected = [(b"photo", b"big.png", b"image/png", LARGE)] if say == "yes" else []
    assert [one for sent in box.host.seen for one in parts(sent)] == expected, words(done.text)
    assert box.spooled() == []
    again = box.browser.send_form("/ui/consent", call=token(asked), say="yes")
    assert (again.status_code, len(box.host.seen)) == (400, len(expected))


@needs_consent
@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="no list of open files here")
def test_calls_that_wait_hold_few_files_and_none_after_the_session(box: Box) -> None:
    large = os.urandom(1_000) * (FILE_LIMIT // 1_000)
    files = [("file.papers", (f"{number}.pdf", large, "")) for number in range(3)]
    pages = [box.call(SEND, files).text for _ in range(4)]
    assert box.spooled() == [FILE_LIMIT] * 6  # of the two latest calls
    late = box.browser.send_form("/ui/consent", call=token(pages[0]), say="yes")
    assert late.status_code == 400
    box.browser.send_form("/ui/logout")
    assert box.spooled() == []
    assert box.host.seen == []


def test_files_that_are_too_large_are_refused(box: Box) -> None:
    large = b"x" * (FILE_LIMIT + 1)
    one = box.call(SEND, [("file.photo", ("large.png", large, ""))])
    assert one.status_code == 400
    assert f"large.png has {FILE_LIMIT + 1:,} bytes" in words(one.text)
    assert f"at most {FILE_LIMIT:,} bytes" in words(one.text)
    all_of_them = [("file.papers", (f"{number}", large[:-1], "")) for number in range(5)]
    try:
        refused = box.call(SEND, all_of_them)
        assert refused.status_code == 413
        assert f"{MOST_UPLOAD:,}" in refused.text
    except (httpx.WriteError, httpx.RemoteProtocolError):  # refused before it was sent
        pass
    many = [("file.papers", (f"{number}", b"", "")) for number in range(100)]
    assert box.call(SEND, many).status_code == 413
    assert box.host.seen == []
    assert box.spooled() == []


def test_a_form_with_files_passes_the_same_checks_as_any_other(box: Box) -> None:
    browser, file = box.browser, [("file.body", ("a.bin", LARGE, ""))]
    own, data = {"Origin": browser.origin}, {"csrf": browser.csrf, "id": STORE}
    cases = {
        "no origin": ("/ui/call", data, {}),
        "another origin": ("/ui/call", data, {"Origin": "http://evil.example"}),
        "another site": ("/ui/call", data, {**own, "Sec-Fetch-Site": "cross-site"}),
        "no token": ("/ui/call", {"id": STORE}, own),
        "a wrong token": ("/ui/call", {**data, "csrf": "x" * 43}, own),
        "a token that is a file": ("/ui/call", {"id": STORE}, own),
        "no form of files": ("/ui/keys", data, own),
        "another host": ("/ui/call", data, {**own, "Host": "evil.example"}),
    }
    told = {}
    for name, (path, fields, headers) in cases.items():
        more = [("csrf", ("csrf", browser.csrf.encode(), ""))] * (name == "a token that is a file")
        told[name] = box.post(path, fields, [*file, *more], headers).status_code
    expected = dict.fromkeys(cases, 403) | {"no form of files": 413, "another host": 421}
    assert told == expected
    broken = {**own, "Content-Type": "multipart/form-data; boundary=x"}
    for content in (b"nonsense", b"--x\r\n\r\n--x--", b""):
        assert browser.post("/ui/call", content=content, headers=broken).status_code in (403, 413)
    without = {**own, "Content-Type": "multipart/form-data"}
    assert browser.post("/ui/call", content=b"a", headers=without).status_code == 413
    with httpx.Client(base_url=browser.origin) as stranger:
        answer = stranger.post("/ui/call", data=data, files=file, headers=own)
    assert answer.status_code == 403
    assert (box.host.seen, box.spooled()) == ([], [])


def test_a_file_that_a_call_brings_is_downloaded_and_never_shown(box: Box) -> None:
    page = box.browser.send_form("/ui/call", id=PICTURE).text
    link = re.search(r'href="(/ui/files/[\w-]+)" download', page)
    assert link is not None, words(page)
    got = box.browser.get(link[1])
    assert got.content == PNG
    assert got.headers["content-type"] == "application/octet-stream"
    assert got.headers["content-disposition"].startswith("attachment; filename")
    assert got.headers["x-content-type-options"] == "nosniff"
    assert "sandbox" in got.headers["content-security-policy"]
    assert box.browser.get("/ui/files/nothing").status_code == 404
    bare = httpx.get(box.browser.origin + link[1])
    assert (bare.status_code, bare.headers["location"]) == (303, "/ui/login")
    with Browser(box.served) as other:
        assert other.get(link[1]).status_code == 404
    (saved,) = (one for one in (box.folder / "files").iterdir() if one.read_bytes() == PNG)
    saved.unlink()
    saved.symlink_to(box.folder / "http-token")
    assert box.browser.get(link[1]).status_code == 404
    saved.unlink()
    assert box.browser.get(link[1]).status_code == 404


def test_a_file_of_a_run_is_downloaded(ready_dir: Path, start_http: Callable[..., Any]) -> None:
    folder = ready_dir / "files"
    folder.mkdir()
    (folder / "photo.png").write_bytes(PNG)
    kept = [
        out.KeptFile(name=name, media_type="image/png", bytes=len(PNG), path=str(path), uri="")
        for name, path in (("photo.png", folder / "photo.png"), ("odd", ready_dir / "runs.db"))
    ]
    made = out.Evidence(
        node=1, api_id="c/t/a", arguments={}, function="f", status=200, response="a file",
        kind="ok", source="live", seconds=0.1, used=False, files=tuple(kept),
    )  # fmt: skip
    settings = load({"data_dir": str(ready_dir)}).settings
    journal = open_journal(settings, "run_1", "a task", SolveOptions(), print)
    journal.add(out.ThoughtEvent(seconds=0.1, node=1, parent=0, depth=1, text=""))
    journal.add(
        out.ObservationEvent(
            seconds=0.2, node=1, depth=1, status=200, text="", source="live", evidence=made
        )
    )
    journal.leave()
    with Browser(start_http({"TOOLSRV_DATA_DIR": str(ready_dir)})) as browser:
        page = browser.get("/ui/runs/run_1").text
        assert 'href="/ui/runs/run_1/files/1/0" download' in page
        got = browser.get("/ui/runs/run_1/files/1/0")
        assert got.content == PNG
        assert "attachment" in got.headers["content-disposition"]
        for path in ("run_1/files/1/1", "run_1/files/1/2", "run_1/files/9/0", "run_2/files/1/0"):
            assert browser.get(f"/ui/runs/{path}").status_code == 404


def test_a_session_closes_what_waits_once() -> None:
    closed = []

    class One:
        def close(self) -> None:
            closed.append(self)

    session = Session()
    session.kept["a"] = One()
    session.close()
    session.close()
    assert len(closed) == 1
