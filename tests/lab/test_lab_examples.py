"""Example requests as a file: what is kept, that the same input gives the same file."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolsrv_catalogs.offline import load_offline_catalog
from toolsrv_lab.retrieval.examples import make_examples, requests
from toolsrv_registry.api import Api
from toolsrv_registry.documents import document_hash, document_text
from toolsrv_registry.encoder import HashingEncoder
from toolsrv_registry.errors import DataError
from toolsrv_registry.similarity import Examples


def test_every_api_that_ships_has_requests() -> None:
    told = requests()
    assert all(len(told[api.id]) >= 20 for api in load_offline_catalog().apis)


def test_the_same_requests_give_the_same_file(tmp_path: Path) -> None:
    apis = load_offline_catalog().apis[:3]
    counts = [make_examples(apis, HashingEncoder(), tmp_path / name, each=4) for name in ("a", "b")]
    assert counts == [12, 12]
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    documents = {document_hash(document_text(api)) for api in apis}
    assert Examples(tmp_path / "a").documents == documents


def test_apis_of_which_nobody_asks_have_no_file(tmp_path: Path) -> None:
    stranger = Api(id="X/y/z", category="X", tool="y", name="z")
    with pytest.raises(DataError, match="no request is written"):
        make_examples([stranger], HashingEncoder(), tmp_path / "examples.npz")
