"""The small model's data: needs with values, episodes as the compact format tells them, rows."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from toolsrv_catalogs.offline import load_offline_catalog
from toolsrv_lab.nano.episodes import Episode, Row, Segment, Teacher
from toolsrv_lab.nano.needs import Needs
from toolsrv_lab.nano.pipeline import Plan, write_rows
from toolsrv_lab.nano.rows import PADDING, about_shards, pack, read_shard, shards, write_shard
from toolsrv_lab.nano.vocabulary import (
    BEGIN,
    MARKERS,
    Vocabulary,
    make_vocabulary,
    read_vocabulary,
)
from toolsrv_lab.nano.world import World
from toolsrv_registry.encoder import HashingEncoder
from toolsrv_registry.errors import DataError
from toolsrv_runtime.planner import layout

APIS = load_offline_catalog().apis
NEAR = {
    one.id: [two for two in APIS if two.category == one.category and two.id != one.id]
    for one in APIS
}


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    with World(APIS) as world:
        needs = Needs(APIS)
        teacher = Teacher(needs, world, NEAR, [1.0] * len(needs.apis))
        rng = random.Random(7)
        made = [teacher.row(rng) for _ in range(150)]
    return [row for row in made if row is not None]


@pytest.fixture(scope="module")
def vocabulary(rows: list[Row]) -> Vocabulary:
    texts = (part for row in rows for part in (row.functions, *(e.segments for e in row.episodes)))
    return make_vocabulary(texts, 2_048)


def episodes(rows: list[Row]) -> Iterator[Episode]:
    for row in rows:
        yield from row.episodes


def text(segments: tuple[Segment, ...]) -> str:
    return "".join(segment.text for segment in segments)


def test_needs_keep_their_api_and_get_other_values() -> None:
    needs, rng = Needs(APIS), random.Random(0)
    api = next(one for one in APIS if one.id == "Data/country_facts/capital_city")
    told = [needs.tell(api, rng) for _ in range(60)]
    countries = {one.values["country"][0] for one in told}
    assert len(countries) > 8
    for one in told:
        assert one.api is api
        assert one.values["country"][1] in one.text


def test_the_values_of_a_call_stand_in_the_task_or_an_earlier_result(rows: list[Row]) -> None:
    calls = copied = 0
    for episode in episodes(rows):
        said = ""
        for segment, before in zip(episode.segments[1:], episode.segments, strict=False):
            if before.text.endswith('": "') and layout.ANSWER not in before.text:
                calls += 1
                copied += segment.text in said
            if not segment.learned:
                said += segment.text
    # The rest are words of an enumeration.
    assert calls > 150
    assert copied > 0.9 * calls


def test_a_thought_copies_words_of_the_task(rows: list[Row]) -> None:
    for episode in episodes(rows):
        task = episode.segments[1].text
        assert episode.segments[0].text == layout.USER
        for clause, number in episode.aims:
            assert clause in task
            assert 1 <= number <= layout.MAX_FUNCTIONS


def test_every_way_to_end_is_told(rows: list[Row]) -> None:
    told = [text(episode.segments) for episode in episodes(rows)]
    assert sum(layout.ANSWER in one for one in told) > 0.7 * len(told)
    assert any(layout.GIVE_UP in one for one in told)
    assert any(layout.NOTHING in one for one in told)
    assert any(" failed. " in one and layout.ANSWER in one for one in told)
    assert all(one.endswith(("}", '"}')) for one in told)


def test_the_same_seed_writes_the_same_row() -> None:
    found = []
    for _ in range(2):
        with World(APIS) as world:
            needs = Needs(APIS)
            teacher = Teacher(needs, world, NEAR, [1.0] * len(needs.apis))
            rng = random.Random(11)
            rows = [teacher.row(rng) for _ in range(3)]
            # Not the answers: some APIs read the clock.
            found.append([row and (row.functions, [e.aims for e in row.episodes]) for row in rows])
    assert found[0] == found[1]


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("Entertainment/game_table/roll_dice", {"dice": "5d1000"}),
        ("Cybersecurity/password_lab/generate_passphrase", {}),
        ("Database/sample_data/fake_person", {}),
    ],
)
def test_what_is_drawn_by_lot_follows_from_the_callers_seed(
    name: str, arguments: dict[str, str]
) -> None:
    api = next(one for one in APIS if one.id == name)
    rng = random.Random(5)
    with World(APIS) as world:
        first = world.call(api, arguments, rng)
        assert not first.error
        assert rng.random() == random.Random(5).random()  # the next draw is where it was
        assert world.call(api, arguments, random.Random(5)) == first
        assert world.call(api, arguments, rng) != first
        assert world.call(api, {**arguments, "seed": "1"}, rng) != first


def test_a_string_reads_alike_wherever_it_stands(vocabulary: Vocabulary) -> None:
    alone = vocabulary.encode(Segment("PX-88213-Q"))
    inside = vocabulary.encode(Segment('where is "PX-88213-Q"?'))
    assert str(alone)[1:-1] in str(inside)[1:-1]
    assert all(len(marker.encode()) <= 32 for marker in MARKERS)


def test_every_marker_is_one_token(vocabulary: Vocabulary) -> None:
    for marker in MARKERS:
        assert vocabulary.encode(Segment(marker, markers=True)) == [vocabulary.id_of(marker)]


def test_a_vocabulary_comes_back_from_its_file(vocabulary: Vocabulary, tmp_path: Path) -> None:
    vocabulary.save(tmp_path / "v.json")
    again = read_vocabulary(tmp_path / "v.json")
    assert again.tokens() == vocabulary.tokens()
    for string in ("Zürich", "日本 🎉", "\x00\ud7ff", "a  b\tc"):
        assert again.encode(Segment(string)) == vocabulary.encode(Segment(string))
    (tmp_path / "v.json").write_text("{")
    with pytest.raises(DataError, match="cannot read the vocabulary"):
        read_vocabulary(tmp_path / "v.json")


@pytest.mark.parametrize(
    "string",
    [
        "🎉👩‍👩‍👧‍👦 🇵🇪",
        b"caf\xe9 \xff\xfe".decode("utf-8", "replace"),
        "".join(map(chr, range(0x20))) + "\x7f\x80\u200b\u202e",
        "\ufeff\U0010ffff\ue000",
        "naïve Ελλάδα ไทย",
    ],
    ids=["emoji", "invalid", "control", "unassigned", "scripts"],
)
def test_text_of_unknown_bytes_comes_back_as_it_was(vocabulary: Vocabulary, string: str) -> None:
    ids = vocabulary.encode(Segment(string))
    assert 0 not in ids
    assert vocabulary.decode(ids) == string


def test_half_a_surrogate_pair_reads_as_a_replacement(vocabulary: Vocabulary) -> None:
    half = vocabulary.encode(Segment("a\ud83cb"))
    assert half == vocabulary.encode(Segment("a\ufffdb"))
    assert vocabulary.decode(vocabulary.encode(Segment("🎉"))[:1]) == "\ufffd"


def test_a_row_predicts_what_is_learned_and_nothing_else(
    rows: list[Row], vocabulary: Vocabulary
) -> None:
    rng = random.Random(0)
    for row in rows[:40]:
        packed = pack(row, vocabulary, 1_024, rng)
        if packed is None:
            continue
        ids, first, places, owner, second = packed
        assert ids[0] == BEGIN
        for number in range(1, int(owner[owner != PADDING].max()) + 1):
            here = np.flatnonzero(owner == number)
            # Each episode stands right behind the functions, whatever stands between.
            assert places[here[0]] == (owner == 0).sum()
            told = first[here][:-1]
            assert (ids[here][1:][told >= 0] == told[told >= 0]).all()
        assert not ((first >= 0) & (second >= 0)).any()
        assert (first[owner == PADDING] < 0).all()


def test_a_row_that_has_no_room_is_left_out(rows: list[Row], vocabulary: Vocabulary) -> None:
    assert pack(rows[0], vocabulary, 64, random.Random(0)) is None


def test_a_damaged_shard_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "rows-0001.npz"
    write_shard(path, [np.zeros((5, 16), np.int16)] * 3, {"seed": 1})
    assert read_shard(path).shape == (3, 5, 16)
    content = bytearray(path.read_bytes())
    whole = bytes(content)
    for at in (100, len(content) // 2):
        content[at] ^= 255
        path.write_bytes(content)
        with pytest.raises(DataError) as caught:
            read_shard(path)
        assert "rows-0001.npz" in caught.value.message
    path.write_bytes(whole[:50])
    with pytest.raises(DataError):
        read_shard(path)
    assert list(shards(tmp_path)) == [path]
    with pytest.raises(DataError):
        list(shards(tmp_path / "none"))


def test_observations_are_those_of_the_compact_format(rows: list[Row]) -> None:
    for episode in episodes(rows):
        parts = list(episode.segments)
        for marker, observation in itertools.pairwise(parts):
            if marker.text == layout.OBSERVATION:
                assert all(isinstance(v, str) for v in json.loads(observation.text).values())


@pytest.mark.nightly
def test_a_killed_writing_of_rows_goes_on(tmp_path: Path) -> None:
    plan = Plan(rows=8, shard=4, vocabulary=700)
    encoder = HashingEncoder()
    files = write_rows(APIS, encoder, tmp_path, plan)
    kept = files[0].stat().st_mtime_ns
    files[1].unlink()
    told: list[tuple[int, int]] = []
    assert write_rows(
        APIS, encoder, tmp_path, plan, progress=lambda done, total: told.append((done, total))
    ) == list(shards(tmp_path))
    assert told == [(4, 8), (8, 8)]
    assert files[0].stat().st_mtime_ns == kept
    assert read_shard(files[1]).shape == (4, 5, plan.length)
    assert read_shard(tmp_path / "held-out.npz").shape == (8, 5, plan.length)
    with pytest.raises(DataError, match="no need is written"):
        write_rows([], encoder, tmp_path / "none", plan)
    about = about_shards(files)
    assert (about["shards"], about["rows"], about["plans"]) == (2, 8, 1)
    assert about["plan"] == plan._asdict()
    assert about["sources"]["apis_that_ship"] == len(APIS)


def test_apis_for_which_nobody_wrote_a_need_are_no_use(tmp_path: Path) -> None:
    strange = [one.model_copy(update={"id": f"x/{one.id}"}) for one in APIS[:5]]
    with pytest.raises(DataError, match="no need is written") as caught:
        write_rows(strange, HashingEncoder(), tmp_path / "none", Plan(rows=4, shard=4))
    assert "catalog enable" in caught.value.hint
    assert not (tmp_path / "none").exists()
