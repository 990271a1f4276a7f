"""Files of data sets and of plain addresses: described, resumed, checked, refused plainly."""

from __future__ import annotations

import hashlib
import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from toolsrv_registry.errors import DataError, NotFoundError, UsageError
from toolsrv_runtime.calls.addresses import AddressResolver
from toolsrv_runtime.errors import PolicyError
from toolsrv_runtime.hub import (
    CHUNK_BYTES,
    HubError,
    RemoteFile,
    checkpoint_files,
    dataset_licence,
    find_recommended,
    recommended_models,
    remote_file,
)
from toolsrv_runtime.hub import download as pulling
from toolsrv_runtime.hub.download import DownloadSink, pull
from toolsrv_runtime.hub.web import fetch_web, web_file

HubHost = runpy.run_path(str(Path(__file__).parents[1] / "hub_host.py"))["HubHost"]
SET, NAME = "maker/tools", "tools.tar.gz"
CONTENT = bytes(range(256)) * 1200
SHA256 = hashlib.sha256(CONTENT).hexdigest()
OWN = AddressResolver(own=frozenset({"127.0.0.1", "localhost"}))


@pytest.fixture
def hub() -> Iterator[Any]:
    with HubHost() as host:
        host.files[f"datasets/{SET}"] = {NAME: CONTENT}
        host.tags[f"datasets/{SET}"] = ["language:en", "license:mit"]
        yield host


def described(hub: Any, revision: str = "main") -> RemoteFile:
    return remote_file(SET, NAME, kind="dataset", revision=revision, endpoint=hub.url)


def test_headers_tell_size_digest_and_commit_before_a_byte_is_brought(hub: Any) -> None:
    found = described(hub)
    assert (found.size_bytes, found.sha256) == (len(CONTENT), SHA256)
    assert len(found.commit) == 40
    assert not hub.ranges
    assert dataset_licence(SET, endpoint=hub.url) == "mit"


def test_a_file_of_a_data_set_is_resumed_where_the_connection_broke(
    hub: Any, tmp_path: Path
) -> None:
    hub.cuts = [CHUNK_BYTES + 5]
    path = pull(described(hub), tmp_path, endpoint=hub.url)
    assert path.read_bytes() == CONTENT
    assert hub.ranges == [None, f"bytes={CHUNK_BYTES}-"]


def test_a_digest_that_the_hub_lists_otherwise_is_told_before_a_byte_is_brought(
    hub: Any, tmp_path: Path
) -> None:
    file = described(hub).model_copy(update={"sha256": "0" * 64})
    with pytest.raises(HubError, match="the hub lists the SHA-256"):
        pull(file, tmp_path, endpoint=hub.url)
    larger = described(hub).model_copy(update={"size_bytes": 9})
    with pytest.raises(HubError, match="were expected"):
        pull(larger, tmp_path, endpoint=hub.url)
    assert not hub.ranges


@pytest.mark.parametrize(
    ("status", "kind", "said"),
    [
        ((401, "RepoNotFound"), NotFoundError, "or it is private"),
        ((401, ""), HubError, "answered 401"),
        ((403, "GatedRepo"), NotFoundError, "whom its owner lets in"),
        ((404, "RepoNotFound"), NotFoundError, "has no maker/tools"),
        ((429, ""), HubError, "answered 429"),
        ((503, ""), HubError, "answered 503"),
    ],
)
def test_what_a_hub_refuses_is_told_plainly(
    hub: Any, status: tuple[int, str], kind: type[Exception], said: str
) -> None:
    hub.status[f"datasets/{SET}"] = status
    hub.retry_after = "17"
    with pytest.raises(kind, match=said) as caught:
        described(hub)
    hint = getattr(caught.value, "hint", "")
    assert ("in 17 seconds" in hint) == (status[0] in (429, 503))
    assert ("HF_TOKEN" in hint) == (status[0] in (401, 404, 429) or "Gated" in status[1])


def test_a_file_or_revision_that_is_not_there_is_told(hub: Any) -> None:
    with pytest.raises(NotFoundError):
        remote_file(SET, "other.zip", kind="dataset", endpoint=hub.url)
    hub.gone = {"f" * 40}
    with pytest.raises(NotFoundError):
        described(hub, "f" * 40)
    with pytest.raises(UsageError):
        remote_file("a/b/c", NAME, kind="dataset", endpoint=hub.url)


def at(hub: Any) -> str:
    return f"{hub.url}/datasets/{SET}/resolve/main/{NAME}"


def over_web(sink_addresses: AddressResolver) -> Any:
    def fetch(file: RemoteFile, sink: DownloadSink) -> None:
        fetch_web(file, sink, sink_addresses)

    return fetch


def test_a_plain_address_is_followed_resumed_and_checked(hub: Any, tmp_path: Path) -> None:
    file = web_file(at(hub), OWN, sha256=SHA256)
    assert (file.size_bytes, file.name) == (len(CONTENT), NAME)
    hub.cuts = [100_000]
    hub.ranges.clear()
    path = pull(file, tmp_path, fetch=over_web(OWN))
    assert path.read_bytes() == CONTENT
    first, second = hub.ranges
    assert first is None
    assert second.startswith("bytes=")
    wrong = file.model_copy(update={"sha256": "1" * 64, "name": "other"})
    with pytest.raises(HubError, match="SHA-256"):
        pull(wrong, tmp_path, fetch=over_web(OWN))
    assert [one.name for one in tmp_path.iterdir()] == [NAME]


def test_a_private_address_is_refused_behind_a_redirect_too(hub: Any) -> None:
    with pytest.raises(PolicyError):
        web_file(at(hub), AddressResolver())
    only_first = AddressResolver(own=frozenset({"127.0.0.1"}))  # the store is at localhost
    with pytest.raises(PolicyError):
        web_file(at(hub), only_first)


def test_what_an_address_refuses_is_told(hub: Any) -> None:
    with pytest.raises(NotFoundError):
        web_file(f"{hub.url}/datasets/{SET}/resolve/main/none.zip", OWN)
    hub.status[f"datasets/{SET}"] = (429, "")
    hub.retry_after = "5"
    with pytest.raises(HubError, match="answered 429") as caught:
        web_file(at(hub), OWN)
    assert "in 5 seconds" in caught.value.hint
    hub.status[f"datasets/{SET}"] = (401, "")
    with pytest.raises(HubError, match="answered 401"):
        web_file(at(hub), OWN)
    with pytest.raises(UsageError):
        web_file("ftp://x/y", OWN)
    with pytest.raises(HubError, match="cannot be reached"):
        web_file("http://127.0.0.1:9/x", OWN)


def test_a_connection_that_never_gives_more_ends_the_pull(
    hub: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pulling, "TRIES", 1)
    file = web_file(at(hub), OWN)
    hub.cuts = [0, 0]
    with pytest.raises(HubError, match="connection broke"):
        pull(file, tmp_path, fetch=over_web(OWN))


def test_recommended_models_cover_the_usual_sizes_of_memory() -> None:
    assert {one.memory_gb for one in recommended_models()} == {4, 8, 16, 32}
    assert len({one.name for one in recommended_models()}) == len(recommended_models())
    named = find_recommended("ToolLLaMA-2-7b-v2")
    assert named is not None
    assert (named.repo, named.file) == ("ToolBench/ToolLLaMA-2-7b-v2", "")
    assert find_recommended("qwen3-4b:x") is None


def test_a_checkpoint_is_its_weights_once_and_what_reads_them() -> None:
    def file(name: str) -> RemoteFile:
        return RemoteFile(repo="a/b", name=name, size_bytes=1, sha256=None, commit="c")

    names = ["config.json", "tokenizer.model", "model.safetensors", "pytorch_model.bin",
             "README.md", "optimizer.bin", "x/config.json"]  # fmt: skip
    found = checkpoint_files("a/b", [file(one) for one in names])
    assert [one.name for one in found] == ["config.json", "tokenizer.model", "model.safetensors"]
    del names[2]
    found = checkpoint_files("a/b", [file(one) for one in names])
    assert [one.name for one in found][-1] == "pytorch_model.bin"
    with pytest.raises(DataError, match="no checkpoint"):
        checkpoint_files("a/b", [file("config.json")])
