"""Pulling from a hub on loopback: resumed, checked, and refused plainly."""

from __future__ import annotations

import errno
import os
import runpy
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from huggingface_hub import close_session

from toolsrv_registry.errors import BusyError, DataError, NotFoundError, UsageError
from toolsrv_runtime.hub import CHUNK_BYTES, HubError, RemoteFile, gguf_files, select_file
from toolsrv_runtime.hub import download as pulling
from toolsrv_runtime.hub.download import file_name, pull

HubHost = runpy.run_path(str(Path(__file__).parents[1] / "hub_host.py"))["HubHost"]
REPO = "maker/model-GGUF"
NAME = "model.Q4_K_M.gguf"
CONTENT = b"GGUF" + bytes(range(256)) * 1200


@pytest.fixture
def hub() -> Iterator[Any]:
    with HubHost() as host:
        host.files[REPO] = {NAME: CONTENT, "README.md": b"# model"}
        yield host


def remote(hub: Any, name: str | None = None) -> RemoteFile:
    return select_file(REPO, gguf_files(REPO, endpoint=hub.url), name)[0]


def test_the_only_gguf_of_a_repository_is_pulled_and_checked(hub: Any, tmp_path: Path) -> None:
    steps: list[tuple[int, int]] = []
    file = remote(hub)
    path = pull(file, tmp_path, endpoint=hub.url, progress=lambda *one: steps.append(one))
    assert path == tmp_path / NAME
    assert path.read_bytes() == CONTENT
    assert steps[-1] == (len(CONTENT), len(CONTENT))
    assert [one.name for one in tmp_path.iterdir()] == [NAME]
    assert pull(file, tmp_path, endpoint=hub.url) == path
    assert len(hub.ranges) == 1  # what is here is not brought again


def test_a_connection_that_is_cut_is_taken_up_where_it_broke(hub: Any, tmp_path: Path) -> None:
    """What came in whole pieces is here when it breaks."""
    hub.cuts = [CHUNK_BYTES + 1000, 2 * CHUNK_BYTES]
    path = pull(remote(hub), tmp_path, endpoint=hub.url)
    assert path.read_bytes() == CONTENT
    assert hub.ranges == [None, f"bytes={CHUNK_BYTES}-", f"bytes={3 * CHUNK_BYTES}-"]


def test_a_pull_that_ended_is_taken_up_by_the_next_one(hub: Any, tmp_path: Path) -> None:
    file = remote(hub)
    here = tmp_path / f"{NAME}.{(file.sha256 or '')[:12]}.partial"
    here.write_bytes(CONTENT[:123_456])
    assert pull(file, tmp_path, endpoint=hub.url).read_bytes() == CONTENT
    assert hub.ranges == ["bytes=123456-"]
    assert not here.exists()


def test_a_hub_that_never_gives_a_byte_more_ends_the_pull_and_keeps_what_is_here(
    hub: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pulling, "TRIES", 1)
    file = remote(hub)
    here = tmp_path / f"{NAME}.{(file.sha256 or '')[:12]}.partial"
    here.write_bytes(CONTENT[:1000])
    hub.status[REPO] = (503, "")
    with pytest.raises(HubError, match="answered 503") as caught:
        pull(file, tmp_path, endpoint=hub.url)
    assert caught.value.hint
    assert here.read_bytes() == CONTENT[:1000]


def test_content_that_is_not_what_the_hub_lists_is_not_kept(hub: Any, tmp_path: Path) -> None:
    hub.wrong = {NAME}
    with pytest.raises(HubError) as caught:
        pull(remote(hub), tmp_path, endpoint=hub.url)
    assert "is not what the hub lists: SHA-256" in caught.value.message
    assert not list(tmp_path.iterdir())


def test_a_partial_of_other_content_is_found_out(hub: Any, tmp_path: Path) -> None:
    file = remote(hub)
    here = tmp_path / f"{NAME}.{(file.sha256 or '')[:12]}.partial"
    here.write_bytes(b"x" * 1000)
    with pytest.raises(HubError, match="not what the hub lists"):
        pull(file, tmp_path, endpoint=hub.url)
    assert pull(file, tmp_path, endpoint=hub.url).read_bytes() == CONTENT


@pytest.mark.parametrize(
    ("code", "word", "kind", "said", "remedy"),
    [
        (401, "RepoNotFound", NotFoundError, "or it is private", "HF_TOKEN"),
        (404, "RepoNotFound", NotFoundError, "has no maker/model-GGUF", "spelling"),
        (403, "GatedRepo", NotFoundError, "whom its owner lets in", "ask for access"),
        (401, "", HubError, "answered 401", "HF_TOKEN"),
        (403, "", HubError, "answered 403", "HF_TOKEN"),
    ],
)
def test_what_a_hub_refuses_is_told_plainly(
    hub: Any, code: int, word: str, kind: type[Exception], said: str, remedy: str
) -> None:
    hub.status[REPO] = (code, word)
    with pytest.raises(kind, match=said) as caught:
        remote(hub)
    assert remedy in getattr(caught.value, "hint", "")


@pytest.mark.parametrize(
    "answer", [b"<html>Log in</html>", b"{}", b"[1, 2]", b'"x"', b'{"id": 1, "siblings": [1]}', b""]
)
def test_an_answer_that_is_no_hub_s_is_told_as_one(hub: Any, answer: bytes) -> None:
    hub.listing = answer
    with pytest.raises(HubError, match="something that is no hub's") as caught:
        remote(hub)
    assert "HF_ENDPOINT" in caught.value.hint
    hub.listing = None
    assert remote(hub).name == NAME


@pytest.mark.parametrize("endpoint", ["hub", "ftp://hub", "http://", "http://[", "http://h:abc"])
def test_what_is_no_address_of_a_hub_is_refused(endpoint: str) -> None:
    with pytest.raises(UsageError, match="not the address of a hub") as caught:
        gguf_files(REPO, endpoint=endpoint)
    assert "HF_ENDPOINT" in caught.value.hint


def test_nothing_but_models_is_asked_for(hub: Any, tmp_path: Path) -> None:
    """In a process of its own: huggingface_hub asks who runs it once, if at all."""
    words = f"from toolsrv_runtime.hub import gguf_files; gguf_files({REPO!r})"
    environment = {**os.environ, "HF_ENDPOINT": hub.url, "HF_HOME": str(tmp_path)}
    environment.pop("HF_HUB_DISABLE_TELEMETRY", None)
    subprocess.run([sys.executable, "-c", words], env=environment, check=True, timeout=120)
    assert [path.partition("?")[0] for path in hub.asked] == [f"/api/models/{REPO}"]
    assert not list(tmp_path.iterdir())


def test_several_files_are_listed_with_their_sizes(hub: Any) -> None:
    hub.files[REPO] |= {"model.Q8_0.gguf": CONTENT * 2, "big-00001-of-00002.gguf": CONTENT}
    hub.files[REPO] |= {"big-00002-of-00002.gguf": CONTENT}
    with pytest.raises(UsageError) as caught:
        remote(hub)
    assert "3 GGUF files" in caught.value.message
    assert "model.Q4_K_M.gguf (307 kB), model.Q8_0.gguf (614 kB)" in caught.value.message
    assert f"toolsrv model pull {REPO}:" in caught.value.hint
    assert remote(hub, "model.Q8_0.gguf").size_bytes == 2 * len(CONTENT)
    split = select_file(REPO, gguf_files(REPO, endpoint=hub.url), "big-00001-of-00002.gguf")
    assert [one.name for one in split] == ["big-00001-of-00002.gguf", "big-00002-of-00002.gguf"]


def test_a_file_that_is_not_there_and_a_repository_without_any(hub: Any) -> None:
    with pytest.raises(NotFoundError, match=r"no file 'x\.gguf'") as caught:
        remote(hub, "x.gguf")
    assert NAME in caught.value.hint
    hub.files[REPO] = {"model.safetensors": b""}
    with pytest.raises(NotFoundError, match="holds no GGUF file"):
        remote(hub)
    with pytest.raises(UsageError, match="not the name of a repository"):
        gguf_files("a/b/c", endpoint=hub.url)


def test_a_hub_that_is_not_there_is_named() -> None:
    with pytest.raises(HubError, match=r"http://127\.0\.0\.1:9 cannot be reached"):
        gguf_files(REPO, endpoint="http://127.0.0.1:9")


def test_no_room_is_told_before_the_download(hub: Any, tmp_path: Path) -> None:
    file = remote(hub).model_copy(update={"size_bytes": 10**18})
    with pytest.raises(DataError, match="needs 1,000,000,000,000,000,000 more bytes"):
        pull(file, tmp_path, endpoint=hub.url)
    assert not hub.ranges


def test_a_disk_that_fills_up_keeps_what_is_here(hub: Any, tmp_path: Path) -> None:
    """The process may write no file beyond 100,000 bytes, as on a full disk."""
    code = (
        "import resource, signal, sys\n"
        "from pathlib import Path\n"
        "from toolsrv_registry.errors import DataError\n"
        "from toolsrv_runtime.hub import gguf_files\n"
        "from toolsrv_runtime.hub.download import pull\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "file = gguf_files(sys.argv[1], endpoint=sys.argv[2])[0]\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))\n"
        "try:\n"
        "    pull(file, Path(sys.argv[3]), endpoint=sys.argv[2])\n"
        "except DataError as error:\n"
        "    print(error.message)\n"
    )
    words = [sys.executable, "-c", code, REPO, hub.url, str(tmp_path)]
    said = subprocess.run(words, capture_output=True, text=True, check=True, timeout=120).stdout
    assert os.strerror(errno.EFBIG) in said
    assert pull(remote(hub), tmp_path, endpoint=hub.url).read_bytes() == CONTENT
    assert hub.ranges[-1] == "bytes=100000-"


def test_a_file_gets_a_name_that_every_system_takes(hub: Any) -> None:
    names = ["a/b/model.gguf", "aux.gguf", "a:b.gguf"]
    made = [file_name(remote(hub).model_copy(update={"name": name})) for name in names]
    assert made == ["model.gguf", "aux_.gguf", "a_b.gguf"]


def test_two_processes_do_not_bring_one_file(hub: Any, tmp_path: Path) -> None:
    file = remote(hub)
    here = tmp_path / f"{NAME}.{(file.sha256 or '')[:12]}.partial"
    code = (
        "import pathlib, sys\n"
        "from toolsrv_registry.file_lock import lock_beside\n"
        "held = lock_beside(pathlib.Path(sys.argv[1]))\n"
        "print('held', flush=True)\n"
        "sys.stdin.read()\n"
    )
    other = subprocess.Popen(
        [sys.executable, "-c", code, str(here)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert other.stdout is not None
    assert other.stdout.readline() == "held\n"
    with pytest.raises(BusyError, match="another process"):
        pull(file, tmp_path, endpoint=hub.url)
    other.communicate("", timeout=30)
    assert pull(file, tmp_path, endpoint=hub.url).is_file()


@pytest.fixture
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """An environment without proxies, to set some in; no client of another one is kept."""
    for name in [one for one in os.environ if one.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)
    close_session()
    yield monkeypatch
    close_session()


@pytest.mark.parametrize("variable", ["ALL_PROXY", "all_proxy", "HTTP_PROXY"])
@pytest.mark.parametrize("proxy", ["socks5://me:secret@127.0.0.1:1", "socks5h://127.0.0.1:1"])
def test_a_socks_proxy_without_its_package_is_told_with_what_to_do(
    hub: Any, no_proxies: pytest.MonkeyPatch, variable: str, proxy: str
) -> None:
    no_proxies.setenv(variable, proxy)
    no_proxies.setitem(sys.modules, "socksio", None)
    with pytest.raises(HubError, match=f"SOCKS.*{variable}") as caught:
        gguf_files(REPO, endpoint=hub.url)
    assert "socksio" in caught.value.hint
    assert "secret" not in f"{caught.value.message} {caught.value.hint}"


@pytest.mark.parametrize(
    ("proxy", "said"),
    [
        ("socks4://127.0.0.1:1", "cannot be used"),
        ("gopher://me:secret@127.0.0.1", "cannot be used"),
        ("://", "cannot be used"),
        ("http://127.0.0.1:99999", "cannot be reached"),
        ("http://me:secret@127.0.0.1:1", "cannot be reached"),
    ],
)
def test_a_proxy_that_cannot_be_used_is_told_by_its_variable(
    hub: Any, no_proxies: pytest.MonkeyPatch, proxy: str, said: str
) -> None:
    no_proxies.setenv("HTTP_PROXY", proxy)
    no_proxies.setenv("HTTPS_PROXY", proxy)
    with pytest.raises(HubError, match=said) as caught:
        gguf_files(REPO, endpoint=hub.url.replace("127.0.0.1", "hub.test"))
    told = f"{caught.value.message} {caught.value.hint}"
    assert "HTTP_PROXY" in told
    assert "HTTPS_PROXY" in told
    assert "secret" not in told


def test_a_proxy_variable_that_is_empty_counts_as_none(
    hub: Any, no_proxies: pytest.MonkeyPatch
) -> None:
    no_proxies.setenv("ALL_PROXY", "")
    assert [one.name for one in gguf_files(REPO, endpoint=hub.url)] == [NAME]
