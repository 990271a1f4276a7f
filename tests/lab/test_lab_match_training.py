"""The matcher's training: samples as numbers, the network over them, checkpoints, export."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from toolsrv_catalogs.offline import load_offline_catalog
from toolsrv_lab.extras import load
from toolsrv_lab.matching.errand_samples import need_samples
from toolsrv_lab.matching.pipeline import TRAINING, read_samples
from toolsrv_lab.matching.samples import Plan, Sample
from toolsrv_lab.matching.tables import MOST_OTHERS, Tables, write_rows
from toolsrv_lab.matching.trainer.options import Options, options_of
from toolsrv_lab.matching.trainer.rows import Batch, Rows, epochs
from toolsrv_lab.training_runs import CHECKPOINT
from toolsrv_registry import pairing
from toolsrv_registry.errors import DataError
from toolsrv_registry.matcher import SHIPPED_MATCHER, Matcher, MatchRequest
from toolsrv_registry.pairing import PairedTokens

APIS = load_offline_catalog().apis
KNOWN = {api.id: api for api in APIS}
HAS_TORCH = pytest.mark.skipif(
    not all(__import__("importlib").util.find_spec(one) for one in ("torch", "transformers")),
    reason="needs the extra `lab`",
)
QUICK: dict[str, Any] = {
    "steps": 16, "groups": 6, "warmup": 2, "learning_rate": 3e-3, "head_rate": 3e-3,
}  # fmt: skip


def made_samples() -> list[Sample]:
    ids = [api.id for api in APIS]
    near = {one: ids[at + 1 : at + 6] for at, one in enumerate(ids)}
    told = list(need_samples(APIS, near, Plan(), rounds=1, progress=lambda _: None))[:120]
    facts = (("country", "Peru"), ("city", "Lima"))
    none = told[0].model_copy(update={"api": "", "spans": {}, "facts": facts, "whole": False})
    return [*told, none]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("samples")
    lines = [one.model_dump_json() for one in made_samples()]
    (out / TRAINING).write_text("\n".join(lines) + "\n", "utf-8")
    return out


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    found = load("tokenizers").Tokenizer.from_file(str(SHIPPED_MATCHER / "tokenizer.json"))
    found.no_truncation()
    found.no_padding()
    return found


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a tiny BERT with the vocabulary of the encoder that ships."""
    torch, transformers = load("torch"), load("transformers")
    from toolsrv_registry.encoder import SHIPPED_ENCODER  # noqa: PLC0415 - beside its use

    out = tmp_path_factory.mktemp("base")
    torch.manual_seed(0)
    config = transformers.BertConfig(
        hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32
    )
    transformers.BertModel(config).save_pretrained(str(out))
    (out / "tokenizer.json").write_bytes((SHIPPED_ENCODER / "tokenizer.json").read_bytes())
    return out


def rows_of(batch: Batch) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Return ids and kinds of each row of a batch."""
    cuts = batch.arrays["starts"][1:]
    ids, kinds = (np.split(batch.arrays[name], cuts) for name in ("ids", "kinds"))
    return [(tuple(a.tolist()), tuple(b.tolist())) for a, b in zip(ids, kinds, strict=True)]


def paired(sample: Sample, api: str, tokenizer: Any) -> PairedTokens:
    def read(text: str) -> pairing.Sentence:
        return pairing.tokenise(tokenizer, text)

    return pairing.pair(
        pairing.document(tokenizer, KNOWN[api]),
        read(sample.text),
        None if sample.whole else sample.clause,
        [(read(name), read(value)) for name, value in sample.facts],
    )


def test_rows_read_as_the_matcher_is_asked(tokenizer: Any, tmp_path: Path) -> None:
    told = 0
    for sample in made_samples():
        write_rows(tmp_path / "rows.npz", [sample], KNOWN, tokenizer, made_of="x")
        rows = Rows(tmp_path / "rows.npz")
        assert len(rows) == 1
        (batch,) = rows.step(np.arange(1), 16, np.random.default_rng(0), 10**6)
        apis = [one for one in (sample.api, *sample.others) if one]
        wanted = {api: paired(sample, api, tokenizer) for api in apis}
        found = rows_of(batch)
        assert set(found) <= {(one.ids, one.kinds) for one in wanted.values()}
        assert len(found) == min(len(sample.others), MOST_OTHERS) + bool(sample.api)
        if not sample.api:
            assert batch.aims == 0
            continue
        serves = int(np.flatnonzero(batch.arrays["serves"])[0])
        assert found[serves] == (wanted[sample.api].ids, wanted[sample.api].kinds)
        told += check_aims(sample, wanted[sample.api], batch, serves)
    assert told > 200


def check_aims(sample: Sample, row: PairedTokens, batch: Batch, serves: int) -> int:
    """Compare what the pointers are to find with the sample; return how many stand somewhere."""
    if not batch.aims:
        return 0
    a = batch.arrays
    start = int(a["starts"][serves])
    assert tuple((a["markers"][0, : len(row.markers)] - start).tolist()) == row.markers
    for marker in range(len(row.markers)):
        for name, places in zip(("firsts", "lasts"), row.places(marker), strict=True):
            assert set(np.flatnonzero(a[name][0, marker]).tolist()) == {0, *places}
    names = [one.name for one in pairing.parameters(KNOWN[sample.api])]
    stated = 0
    aims = zip(a["aim_marker"], a["aim_first"], a["aim_last"], strict=True)
    for marker, first, last in ((int(x), int(y), int(z)) for x, y, z in aims):
        span = (0, *sample.clause) if marker == 0 else sample.spans.get(names[marker - 1])
        if row.options[marker]:
            assert (first, last) in ((0, 0), *row.options[marker])
        elif first == 0:
            assert span is None
        else:
            begin, end = row.sources[first], row.sources[last]
            assert begin is not None
            assert end is not None
            assert (begin[0], begin[1], end[2]) == span
            stated += 1
    return stated


def test_what_comes_twice_or_teaches_nothing_is_left_out(tokenizer: Any) -> None:
    tables = Tables(tokenizer, KNOWN)
    one, *_ = made_samples()
    tables.add(one)
    tables.add(one)
    tables.add(one.model_copy(update={"api": "", "others": ()}))
    tables.add(one.model_copy(update={"spans": {}, "listed": {}, "others": (), "whole": False}))
    assert len(tables) == 1
    assert len(tables.arrays()["text_length"]) == 1


def test_a_step_is_cut_into_batches_that_say_the_same(tokenizer: Any, tmp_path: Path) -> None:
    path = tmp_path / "rows.npz"
    count = write_rows(path, made_samples(), KNOWN, tokenizer, made_of="x")
    rows = Rows(path)
    assert len(rows) == count
    (whole,) = rows.step(np.arange(40), 3, np.random.default_rng(0), 10**6)
    parts = rows.step(np.arange(40), 3, np.random.default_rng(0), 1_500)
    assert len(parts) > 3
    assert sorted(rows_of(whole)) == sorted(row for one in parts for row in rows_of(one))
    for name in ("groups", "choices", "aims", "tokens"):
        assert getattr(whole, name) == sum(getattr(one, name) for one in parts)


def test_each_sample_comes_once_before_any_comes_again() -> None:
    drawn = epochs(24, 8, 0)
    first = np.concatenate([next(drawn) for _ in range(3)])
    second = np.concatenate([next(drawn) for _ in range(3)])
    assert sorted(first) == sorted(second) == list(range(24))
    assert list(first) != list(second)
    assert list(next(epochs(24, 8, 1))) != list(next(epochs(24, 8, 0)))


def test_seconds_alone_are_the_only_end() -> None:
    assert (options_of(seconds=5).steps, options_of(seconds=5, steps=3).steps) == (None, 3)
    assert options_of(steps=None) == Options()
    with pytest.raises(ValueError, match="ends after"):
        Options(steps=None)


@HAS_TORCH
def test_the_network_is_the_one_that_is_exported(
    base: Path, tokenizer: Any, tmp_path: Path
) -> None:
    from toolsrv_lab.matching.network import matcher_network  # noqa: PLC0415 - needs torch
    from toolsrv_lab.matching.trainer.network import Network  # noqa: PLC0415 - needs torch

    torch = load("torch")
    network = matcher_network(base).eval()
    own = Network(network.state_dict(), 2, "cpu")
    write_rows(tmp_path / "rows.npz", made_samples(), KNOWN, tokenizer, made_of="x")
    (batch,) = Rows(tmp_path / "rows.npz").step(np.arange(24), 3, np.random.default_rng(0), 10**6)
    arrays = {name: torch.from_numpy(one) for name, one in batch.arrays.items()}
    with torch.no_grad():
        serves, firsts, lasts = own(arrays, batch.parts, quantised=False)
    starts = batch.arrays["starts"].tolist()
    pointing = {int(row[0]): at for at, row in enumerate(batch.arrays["given"])}
    assert len(pointing) > 10
    for at, (ids, kinds) in enumerate(rows_of(batch)):
        number = pointing.get(starts[at])
        markers = torch.zeros(1, 1, dtype=torch.long)
        if number is not None:
            markers = (arrays["markers"][number] - starts[at]).clamp_min(0)[None]
        with torch.no_grad():
            told = torch.tensor([ids])
            one, begins, ends = network(told, torch.tensor([kinds]), torch.ones_like(told), markers)
        assert float(one[0]) == pytest.approx(float(serves[at]), abs=1e-5)
        if number is None:
            continue
        for mine, theirs, allowed in ((firsts, begins, "firsts"), (lasts, ends, "lasts")):
            may = batch.arrays[allowed][number][:, : len(ids)]
            np.testing.assert_allclose(
                mine[number][:, : len(ids)].numpy()[may], theirs[0].numpy()[may], atol=1e-5
            )


RUN = """
import json, sys
from pathlib import Path
import torch
from toolsrv_catalogs.offline import load_offline_catalog
from toolsrv_lab.matching.trainer.options import options_of
from toolsrv_lab.matching.training import prepare, train
torch.set_num_threads(1)
base, out, samples = map(Path, sys.argv[1:4])
prepare(base, out, samples, {api.id: api for api in load_offline_catalog().apis})
train(
    base, out, options_of(**json.loads(sys.argv[4])), save_seconds=0,
    progress=lambda done, total, loss, tokens: print(done, loss, flush=True),
)
"""


def command(base: Path, out: Path, folder: Path, **changed: object) -> list[str]:
    options = json.dumps(QUICK | changed)
    return [sys.executable, "-c", RUN, str(base), str(out), str(folder), options]


def run(*words: object, **more: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(one) for one in words], check=True, capture_output=True, text=True, timeout=300, **more
    )


def same_weights(one: Path, other: Path) -> None:
    torch = load("torch")
    first, second = (torch.load(path / "matcher.pt", weights_only=True) for path in (one, other))
    assert first.keys() == second.keys()
    for name, values in first.items():
        np.testing.assert_array_equal(values.numpy(), second[name].numpy(), err_msg=name)


@HAS_TORCH
@pytest.mark.nightly
def test_it_learns_and_a_killed_training_goes_on(base: Path, folder: Path, tmp_path: Path) -> None:
    whole = run(*command(base, tmp_path / "whole", folder))
    losses = [float(line.split()[1]) for line in whole.stdout.splitlines()]
    assert len(losses) == QUICK["steps"]
    assert losses[-1] < losses[0]
    killed = subprocess.Popen(
        command(base, tmp_path / "killed", folder), stdout=subprocess.PIPE, text=True
    )
    stop = random.Random(1).randrange(4, 9)
    assert killed.stdout is not None
    with killed.stdout:
        for _ in zip(range(stop), killed.stdout, strict=False):
            pass
        killed.send_signal(signal.SIGKILL)
    killed.wait(60)
    rest = run(*command(base, tmp_path / "killed", folder))
    assert int(rest.stdout.split()[0]) >= stop
    same_weights(tmp_path / "whole", tmp_path / "killed")
    told = json.loads((tmp_path / "killed" / "training.json").read_text())
    assert told["steps"] == told["options"]["steps"] == QUICK["steps"]
    assert told["options"]["seed"] == 0
    assert "torch" in told["versions"]


@HAS_TORCH
@pytest.mark.nightly
def test_a_training_in_seconds_ends_in_time(base: Path, folder: Path, tmp_path: Path) -> None:
    run(*command(base, tmp_path, folder, steps=None, seconds=1.0))
    told = json.loads((tmp_path / "training.json").read_text())
    assert told["options"]["steps"] is None
    assert told["steps"] >= 1
    assert told["seconds"] >= 1


ELSEWHERE = """
import runpy, sys
sys.modules.update(dict.fromkeys(("toolsrv_lab", "toolsrv_registry", "toolsrv_catalogs")))
import torch
torch.set_num_threads(1)
runpy.run_module("trainer", run_name="__main__")
"""


@HAS_TORCH
@pytest.mark.nightly
def test_a_machine_without_toolsrv_trains_the_same(
    base: Path, folder: Path, tmp_path: Path
) -> None:
    from toolsrv_lab.matching.training import (  # noqa: PLC0415 - needs torch
        export_start,
        load_finished,
        prepare,
    )

    prepare(base, tmp_path / "carried", folder, KNOWN)
    export_start(base, tmp_path / "carried")
    options = [word for key, one in QUICK.items() for word in (f"--{key.replace('_', '-')}", one)]
    words = [sys.executable, "-c", ELSEWHERE, "--out", tmp_path / "there", *options]
    told = run(*words, cwd=tmp_path / "carried")
    assert "16 of 16 steps" in told.stderr
    run(*command(base, tmp_path / "here", folder))
    same_weights(tmp_path / "here", tmp_path / "there")
    from toolsrv_lab.matching.network import matcher_network  # noqa: PLC0415 - needs torch

    assert load_finished(matcher_network(base), tmp_path / "there")["steps"] == QUICK["steps"]


@HAS_TORCH
@pytest.mark.filterwarnings("ignore")  # the exporter warns about itself
@pytest.mark.nightly
def test_an_exported_one_reads_as_it_was_trained(
    base: Path, folder: Path, tokenizer: Any, tmp_path: Path
) -> None:
    from toolsrv_lab.matching.export import export_matcher  # noqa: PLC0415 - needs torch
    from toolsrv_lab.matching.network import matcher_network  # noqa: PLC0415 - needs torch
    from toolsrv_lab.matching.trainer.network import Network  # noqa: PLC0415 - needs torch
    from toolsrv_lab.matching.training import load_finished  # noqa: PLC0415 - needs torch

    torch = load("torch")
    run(*command(base, tmp_path / "run", folder, steps=2))
    card = export_matcher(
        [tmp_path / "run"], base, tmp_path / "out", lambda made: {"at": made.name}
    )
    assert card["training"]["options"]["steps"] == 2
    network = matcher_network(base).eval()
    network.load_state_dict(torch.load(tmp_path / "run" / "matcher.pt", weights_only=True))
    matcher = Matcher(tmp_path / "out")
    for whole in (False, True):
        sample = next(one for one in read_samples(folder / TRAINING) if one.whole == whole)
        row = paired(sample, sample.api, tokenizer)
        ids, kinds, markers = (torch.tensor([one]) for one in (row.ids, row.kinds, row.markers))
        with torch.no_grad():
            serves, _, _ = network(ids, kinds, torch.ones_like(ids), markers)
        asked = MatchRequest(sample.text, None if whole else sample.clause, sample.facts)
        (match,) = matcher.match(asked, [KNOWN[sample.api]])
        assert match.serves == pytest.approx(float(serves[0]), abs=0.1)
    again = matcher_network(base)
    assert load_finished(again, tmp_path / "out")["options"]["steps"] == 2
    # What a training's last part reads is what the export's int8 holds.
    trained = Network(network.state_dict(), 2, "cpu")
    for name, value in trained._quantised().items():
        if name in trained.trained:
            np.testing.assert_allclose(
                again.state_dict()[name].numpy(), value.detach().numpy(), atol=1e-6, err_msg=name
            )
    with pytest.raises(DataError, match="no finished training"):
        export_matcher([tmp_path], base, tmp_path / "other", lambda _: {})


@HAS_TORCH
def test_what_is_no_matcher_of_this_network_is_refused(base: Path, tmp_path: Path) -> None:
    from toolsrv_lab.matching.network import matcher_network  # noqa: PLC0415 - needs torch
    from toolsrv_lab.matching.training import load_finished  # noqa: PLC0415 - needs torch

    with pytest.raises(DataError, match="cannot go on from the matcher"):
        load_finished(matcher_network(base), SHIPPED_MATCHER)  # of another width
    for cut in ("model.int8.onnx", "card.json"):
        for name in ("model.int8.onnx", "card.json"):
            content = (SHIPPED_MATCHER / name).read_bytes()
            (tmp_path / name).write_bytes(content[:1000] if name == cut else content)
        with pytest.raises(DataError, match="cannot go on from the matcher"):
            load_finished(matcher_network(base), tmp_path)


@HAS_TORCH
@pytest.mark.filterwarnings("ignore")  # the exporter warns about itself
def test_the_weights_of_several_runs_are_averaged(base: Path, tmp_path: Path) -> None:
    from toolsrv_lab.matching.export import export_matcher  # noqa: PLC0415 - needs torch
    from toolsrv_lab.matching.network import matcher_network  # noqa: PLC0415 - needs torch

    torch = load("torch")
    weights = matcher_network(base).state_dict()
    runs = [tmp_path / name for name in ("mean", "first", "last")]
    for one, shift in zip(runs, (0.0, -0.5, 0.5), strict=True):
        one.mkdir()
        moved = {k: v + shift if v.is_floating_point() else v for k, v in weights.items()}
        torch.save(moved, one / "matcher.pt")
        (one / "training.json").write_text(f'{{"of": "{one.name}"}}', "utf-8")
    export_matcher(runs[:1], base, tmp_path / "one", lambda _: {})
    card = export_matcher(runs[1:], base, tmp_path / "two", lambda _: {})
    assert card["training"] == {"of": "last", "mean_of_the_last": 2}
    asked = MatchRequest("What is the capital of Peru?")
    first, second = (
        Matcher(tmp_path / name).match(asked, list(KNOWN.values())[:2]) for name in ("one", "two")
    )
    assert [m.serves for m in second] == pytest.approx([m.serves for m in first], abs=0.05)


@HAS_TORCH
def test_a_checkpoint_of_other_settings_is_refused(
    base: Path, folder: Path, tmp_path: Path
) -> None:
    from toolsrv_lab.matching.training import prepare, train  # noqa: PLC0415 - needs torch

    run(*command(base, tmp_path, folder, steps=2))
    with pytest.raises(DataError, match="other settings"):
        train(base, tmp_path, Options(**QUICK | {"steps": 3}))
    (tmp_path / CHECKPOINT).write_bytes(b"damaged")
    with pytest.raises(DataError, match="cannot read the checkpoint"):
        train(base, tmp_path, Options(**QUICK | {"steps": 2}))
    (tmp_path / "rows.npz").write_bytes(b"damaged")
    assert prepare(base, tmp_path, folder, KNOWN) == len(Rows(tmp_path / "rows.npz"))
    with pytest.raises(DataError, match="a step takes 900 samples"):
        train(base, tmp_path, Options(groups=900))
    with pytest.raises(DataError, match="in no enabled catalog"):
        prepare(base, tmp_path, folder, {})
