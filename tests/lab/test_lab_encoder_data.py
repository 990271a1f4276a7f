"""What the encoder learns from: nothing held out, each need with its own document; batches and mining."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from toolsrv_catalogs.offline import load_offline_catalog
from toolsrv_lab.extras import load
from toolsrv_lab.instructions import requests, writer
from toolsrv_lab.instructions.errands import errands, spoken, written
from toolsrv_lab.retrieval import training
from toolsrv_lab.retrieval.contrastive.batches import Batch, Mined, Sampler, chunk_rows
from toolsrv_lab.retrieval.contrastive.options import Options
from toolsrv_lab.retrieval.contrastive.pairs import Pairs, Texts
from toolsrv_lab.retrieval.queries import Named, Query
from toolsrv_lab.retrieval.training import HELD_OUT, Material, make_pairs, material
from toolsrv_registry.api import Api
from toolsrv_registry.documents import document_text
from toolsrv_registry.encoder import SHIPPED_ENCODER
from toolsrv_registry.errors import DataError, NotFoundError


def api(api_id: str, description: str) -> Api:
    category, tool, name = api_id.split("/")[:3]
    return Api(
        id=api_id, category=category, tool=tool, name=name,
        description=description,
    )  # fmt: skip


def query(text: str, *needs: tuple[str, str]) -> Query:
    relevant = tuple(Named(id=one) for one, _ in needs)
    words = tuple(one for _, one in needs)
    return Query(query_id="", query=text, relevant=relevant, needs=words if all(words) else ())


@pytest.mark.nightly
def test_nothing_held_out_is_learnt_from(monkeypatch: pytest.MonkeyPatch) -> None:
    tools = [api(f"Data/tool{at}/get", "gets it") for at in range(200)]
    operations = [api(f"service/doc{at}.json/GET /it", "gets it") for at in range(400)]
    asked = [query("get it", (one.id, "get it")) for one in operations]
    monkeypatch.setattr(requests, "read_services", lambda *_, **__: (operations, asked))
    learnt = material(tools, folder=Path("any"))
    known = {one.id for one in learnt.apis}
    assert {one.id for one in load_offline_catalog().apis} <= known
    held = [one for one in tools if writer.is_held_out(one, HELD_OUT)]
    held += [
        one for one in operations if requests.is_held_out_document(requests.document_of(one.id))
    ]
    assert len(held) > 20
    assert known.isdisjoint(one.id for one in held)
    needed = {one for some in learnt.queries for one in some.relevant_ids}
    assert needed.isdisjoint(one.id for one in held)
    assert sum(one.id in known for one in operations) > 350
    assert sum(one.set == "all" and one in asked for one in learnt.queries) > 350


def test_what_comes_with_the_laboratory_is_learnt_from() -> None:
    queries = {one.query: one for one in material([]).queries}
    api_id, needs = next(iter(written().items()))
    assert api_id in queries[spoken(needs[0])].relevant_ids
    errand = errands()[0]
    assert set(queries[errand.task].relevant_ids) == set(errand.apis)


def pairs_of(*queries: Query) -> Pairs:
    apis = [
        api("Data/rain/get", "rain of a day"),
        api("Data/rain_too/get", "snow of a day"),
        api("Data/songs/get", "songs of a singer"),
        api("Data/songs/same", "songs of a singer"),
    ]
    return make_pairs(Material(tuple(apis), queries), SHIPPED_ENCODER)


def test_each_need_goes_with_its_document_and_is_no_negative_of_the_others() -> None:
    rain, song = ("Data/rain/get", "will it rain"), ("Data/songs/get", "a song")
    pairs = pairs_of(
        query("will  it rain and a song", rain, song), query("snow", ("Data/rain_too/get", ""))
    )
    assert pairs.counts() == {"documents": 4, "texts": 4, "needs": 3, "wholes": 2}
    assert pairs.needs.tolist() == [[0, 0], [1, 2], [3, 1]]
    assert pairs.wholes.tolist() == [[2, 0], [2, 2]]
    for text in (0, 1, 2):
        assert set(pairs.relevant[text].tolist()) == {0, 2, -1}
    assert pairs.groups[2] == pairs.groups[3] != pairs.groups[0]


def test_a_text_whose_apis_are_not_all_known_is_not_met_whole() -> None:
    pairs = pairs_of(query("rain and more", ("Data/rain/get", "rain"), ("Data/gone/get", "more")))
    assert pairs.counts()["needs"] == 1
    assert not len(pairs.wholes)


def test_documents_of_one_text_are_one() -> None:
    one = api("Data/songs/get", "songs")
    twin = one.model_copy(update={"id": "Data/songs/again"})
    assert document_text(one) == document_text(twin)
    asked = query("both", (one.id, "a song"), (twin.id, "another"))
    pairs = make_pairs(Material((one, twin), (asked,)), SHIPPED_ENCODER)
    assert pairs.counts()["documents"] == 1


def test_without_a_known_api_or_a_tokeniser_it_says_so(tmp_path: Path) -> None:
    with pytest.raises(DataError):
        pairs_of(query("nothing", ("Data/gone/get", "")))
    with pytest.raises(NotFoundError):
        make_pairs(Material((api("Data/a/b", ""),), (query("x", ("Data/a/b", "")),)), tmp_path)


def made(seed: int = 0) -> tuple[Pairs, Mined]:
    """Return 60 texts over 30 documents, each with one to three that it needs."""
    rng = np.random.default_rng(seed)
    needed = [sorted(rng.choice(30, rng.integers(1, 4), replace=False)) for _ in range(60)]
    needs = np.asarray([(at, one) for at, some in enumerate(needed) for one in some], np.int32)
    relevant = np.full((60, 16), -1, np.int32)
    for at, some in enumerate(needed):
        relevant[at, : len(some)] = some
    rows = [list(range(1, int(count))) for count in rng.integers(3, 20, 90)]
    groups = np.arange(30, dtype=np.int32)
    nothing = np.zeros((0, 2), np.int32)
    pairs = Pairs(Texts.of(rows[:30]), Texts.of(rows[30:]), groups, needs, nothing, relevant)
    trained = np.unique(needs[:, 1])
    near = rng.choice(trained, (30, 10)).astype(np.int32)
    negatives = rng.integers(-1, 30, (60, 12)).astype(np.int32)
    return pairs, Mined(negatives, near)


def test_a_batch_holds_true_pairs_and_every_second_one_neighbours() -> None:
    pairs, mined = made()
    options = Options(batch_size=16)
    sampler = Sampler(pairs, options)
    known = set(map(tuple, pairs.needs.tolist()))
    for step in range(40):
        batch = sampler.draw(step, mined)
        assert len(batch.texts) == 16
        np.testing.assert_array_equal(batch.documents[batch.columns], batch.positives)
        assert set(zip(batch.texts.tolist(), batch.positives.tolist(), strict=True)) <= known
        assert len(batch.documents) % chunk_rows(options) == 0
        assert len(set(batch.documents[batch.filled :])) == len(batch.documents) - batch.filled
        assert (np.diff(pairs.documents.lengths[batch.documents]) >= 0).all()
        assert (np.diff(pairs.texts.lengths[batch.texts]) >= 0).all()


def test_a_sampler_goes_on_from_its_position() -> None:
    pairs, mined = made()
    options = Options(batch_size=16)
    whole = Sampler(pairs, options)
    for step in range(9):
        whole.draw(step, mined)
    other = Sampler(pairs, options)
    other.restore(whole.position)
    one, again = whole.draw(9, mined), other.draw(9, mined)
    for name in Batch.__slots__:
        np.testing.assert_array_equal(getattr(one, name), getattr(again, name))


def test_mined_negatives_are_neither_needed_nor_the_same_in_another_service() -> None:
    pytest.importorskip("torch", reason="the extra lab is not installed")
    torch = load("torch")
    mining = load("toolsrv_lab.retrieval.contrastive.mining")
    network = load("toolsrv_lab.retrieval.contrastive.network")
    pairs, _ = made()

    class Vectors:
        """Texts whose vectors are known."""

        def __init__(self, rows: object) -> None:
            self._rows = torch.nn.functional.normalize(torch.as_tensor(rows), dim=1)

        def __len__(self) -> int:
            return len(self._rows)

        def vectors(self, *_: object) -> object:
            return self._rows

    rng = np.random.default_rng(1)
    rows = rng.standard_normal((30, 8)).astype(np.float32)
    rows[20:] = rows[:10]  # twins in another service
    texts = rows[pairs.relevant[:, 0]] + 0.1 * rng.standard_normal((60, 8)).astype(np.float32)
    relevant = torch.from_numpy(pairs.relevant.astype(np.int64))
    groups = torch.from_numpy(pairs.groups.astype(np.int64))
    trained = torch.zeros(30, dtype=torch.bool)
    trained[torch.from_numpy(np.unique(pairs.needs[:, 1]).astype(np.int64))] = True
    miner = mining.Miner(Vectors(rows), Vectors(texts), groups, relevant, trained, Options())
    found = miner.mine(8, {}, None)
    assert network.LENGTH_STEP == 16
    assert (found.negatives >= 0).sum() > 300
    for text, negatives in enumerate(found.negatives):
        needed = {int(one) for one in pairs.relevant[text] if one >= 0}
        twins = {(one + 20) % 40 for one in needed if one < 10 or one >= 20}
        assert needed.isdisjoint(negatives.tolist())
        assert twins.isdisjoint(negatives.tolist())
    assert trained[torch.from_numpy(found.near.astype(np.int64))].all()


def test_held_out_and_cut_are_as_the_options_say() -> None:
    assert training.MAX_TOKENS == 80
    long = api("Data/long/get", "word " * 1_000)
    pairs = make_pairs(Material((long,), (query("x", (long.id, "")),)), SHIPPED_ENCODER)
    assert pairs.documents.ids.shape[1] <= training.MAX_TOKENS
