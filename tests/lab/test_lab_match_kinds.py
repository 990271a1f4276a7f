"""Samples of which only the APIs are known: requests to services, whole requests, talk."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from toolsrv.cli.main import cli
from toolsrv_catalogs.offline import load_offline_catalog
from toolsrv_lab.conversations.episode import HeldOutTasks
from toolsrv_lab.instructions import requests as service_files
from toolsrv_lab.instructions.requests import ServiceRequest, document_of, is_held_out_document
from toolsrv_lab.matching import kinds
from toolsrv_lab.matching.choice_samples import Asked, Choices
from toolsrv_lab.matching.kinds import talk_texts
from toolsrv_lab.matching.pipeline import TRAINING, read_apis, read_samples
from toolsrv_lab.matching.samples import Sample
from toolsrv_registry.api import Api
from toolsrv_registry.encoder import HashingEncoder
from toolsrv_registry.errors import DataError
from toolsrv_runtime.agent.guidance import SMALL_TALK

APIS = load_offline_catalog().apis
HELD = next(f"held{n}" for n in range(1_000) if is_held_out_document(f"held{n}"))
LEARNT = next(f"free{n}" for n in range(9) if not is_held_out_document(f"free{n}"))


def made(name: str, description: str, tool: str) -> Api:
    api_id = f"Test/{tool}/{name}/{len(description)}"
    return Api(id=api_id, category="Test", tool=tool, name=name, description=description)


SMALL = [
    made("send", "Send a parcel to an address", "post"),
    made("dispatch", "Send a parcel to an address", "mail"),  # the same in another service
    made("track", "Say where a parcel is now", "post"),
    made("weigh", "How heavy is it", "post"),
    made("forecast", "Tomorrow's weather for a town", "sky"),
    made("moon", "When the moon rises tonight", "sky"),
]


class Vectors(HashingEncoder):
    """All things are different, except the first two, which say the same."""

    def encode(self, texts: object, **_: object) -> np.ndarray:
        vectors = np.eye(len(list(texts)), dtype=np.float32)  # type: ignore[call-overload]
        vectors[1] = vectors[0]
        return vectors


ASKED = Asked(
    "Please send the box to Rome, and will it rain?",
    {SMALL[0].id: "send the box to Rome", SMALL[4].id: "will it rain?"},
)


def drawn(count: int = 40) -> list[Sample]:
    choices = Choices(SMALL, Vectors(), service=lambda api: api.tool)
    return [one for _, one in choices.samples([ASKED] * count, "1")]


def test_what_says_the_same_stands_against_nothing() -> None:
    samples = drawn()
    assert {one.api for one in samples} == {SMALL[0].id, SMALL[4].id, ""}
    for one in samples:
        assert SMALL[1].id not in one.others
        assert one.others
        assert not one.spans
        assert one.api not in one.others
        if one.api and one.whole:
            assert {SMALL[0].id, SMALL[4].id}.isdisjoint(one.others)


def test_a_clause_stands_beside_what_the_text_asks_for_elsewhere() -> None:
    clauses = [one for one in drawn() if one.api == SMALL[0].id and not one.whole]
    assert all(one.others[0] == SMALL[4].id for one in clauses)
    assert any(one.text[slice(*one.clause)] == "send the box to Rome" for one in clauses)
    own = {SMALL[2].id, SMALL[3].id}
    assert all(own & set(one.others) for one in clauses)


def test_nothing_serves_beside_a_clause_that_goes_unserved() -> None:
    none = [one for one in drawn() if not one.api]
    assert none
    asked = {SMALL[0].id, SMALL[1].id, SMALL[4].id}
    assert all(2 <= len(one.others) <= 3 and asked.isdisjoint(one.others) for one in none)


def write_documents(folder: Path) -> None:
    for name in (HELD, LEARNT):
        paths = {
            f"/{word}": {"get": {"operationId": word, "summary": f"{word} of {name}"}}
            for word in ("list", "open", "close", "move")
        }
        document = {"openapi": "3.0.0", "info": {"title": name, "version": "1"}, "paths": paths}
        (folder / f"{name}.json").write_text(json.dumps(document))


@pytest.fixture
def documents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "api"
    folder.mkdir()
    write_documents(folder)
    told = tuple(
        ServiceRequest(f"please {word} my {name} things", {(f"{name}.json", "GET", f"/{word}"): f"{word} my {name} things"})
        for name in (HELD, LEARNT)
        for word in ("list", "open", "close")
    )  # fmt: skip
    monkeypatch.setattr(service_files, "service_requests", lambda: told)
    return folder


def test_documents_that_the_encoder_does_not_know_are_held_out(documents: Path) -> None:
    kind = kinds.services(documents, HashingEncoder(), HeldOutTasks(), 0)
    assert kind.file == kinds.SERVICES
    assert len(kind.apis) == 8
    for samples, name in ((kind.held, HELD), (kind.training, LEARNT)):
        assert len(samples) >= 3
        named = {api for one in samples for api in (one.api, *one.others) if api}
        assert {document_of(api) for api in named} == {name}
    assert {one.whole for one in kind.held} == {True, False}


def test_talk_stands_beside_functions_and_one_text_in_33_is_held_out() -> None:
    kind = kinds.talk_kind(APIS, (), HeldOutTasks(), 0)
    own = {api.id for api in SMALL_TALK}
    assert set(kind.apis) == own
    texts = {one.text for one in kind.training}
    assert texts.isdisjoint(one.text for one in kind.held)
    assert len(kind.held) == pytest.approx(len(talk_texts()) / 33, abs=1)
    serving = [one for one in kind.training if one.api]
    assert {one.api for one in serving} == own
    assert all(one.api not in one.others and set(one.others) - own for one in serving)
    plain = {text for which, text in talk_texts() if which == "none"}
    assert all(not one.api for one in kind.training if one.text in plain)


def test_without_their_catalog_there_are_no_whole_requests() -> None:
    with pytest.raises(DataError, match="no request is about") as caught:
        kinds.whole_requests(APIS, HashingEncoder(), HeldOutTasks(), 0)
    assert "toolbench" in caught.value.hint


@pytest.mark.nightly
def test_the_command_adds_the_kinds_that_are_asked_for(
    documents: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOOLSRV_DATA_DIR", str(tmp_path / "data"))
    out = tmp_path / "samples"
    words = ["--rounds", "1", "--own-rounds", "1", "--errand-rounds", "1", "--json"]
    words = ["lab", "samples", "--out", str(out), "--services", str(documents), "--talk", *words]
    done = CliRunner().invoke(cli, words)
    assert done.exit_code == 0, done.output
    counts = json.loads(done.stdout)["samples"]
    assert counts[kinds.SERVICES] >= 3
    assert counts[kinds.TALK] > 40
    known = {**{api.id: api for api in APIS}, **read_apis(out)}
    assert len(read_samples(out / TRAINING, known)) == counts[TRAINING]
