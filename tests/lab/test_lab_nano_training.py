"""The small network's training: it learns to copy, and a killed run goes on where it was."""

from __future__ import annotations

import json
import random
import resource
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from toolsrv_lab.extras import load
from toolsrv_lab.journal import CURVE, PICTURE
from toolsrv_lab.nano.episodes import Episode, Row, Segment
from toolsrv_lab.nano.export import ABOUT, WEIGHTS
from toolsrv_lab.nano.network import Shape, TrainingOptions, make_network
from toolsrv_lab.nano.rows import pack, write_shard
from toolsrv_lab.nano.training import train
from toolsrv_lab.nano.vocabulary import Vocabulary, make_vocabulary, read_vocabulary
from toolsrv_lab.training_runs import CHECKPOINT, SAVE_SECONDS, exclusive_training
from toolsrv_registry.errors import BusyError, DataError, UsageError
from toolsrv_runtime.planner import layout

pytest.importorskip("torch", reason="needs the extra `lab`")

RUN = """
import sys
from pathlib import Path
import torch
from toolsrv_lab.nano.network import Shape
from toolsrv_lab.nano.network import TrainingOptions
from toolsrv_lab.nano.training import train
from toolsrv_lab.nano.vocabulary import read_vocabulary
torch.set_num_threads(1)
folder, out, shape, options = sys.argv[1:]
folder = Path(folder)
train(
    Shape.model_validate_json(shape), read_vocabulary(folder / "vocabulary.json"),
    [folder / "rows-0.npz"], folder / "held.npz", Path(out),
    TrainingOptions.model_validate_json(options),
    progress=lambda done, total, loss, tokens: print(done, loss, flush=True),
    save_seconds=0, compiled=False,
)
"""
OPTIONS = TrainingOptions(steps=30, rows=4, validate_every=10, warmup=3)


def row(rng: random.Random) -> Row:
    """Return a row in which the function that is named serves, with the word that is said."""
    things = ["rain", "news", "song", "city"]
    rng.shuffle(things)
    lines = [Segment(layout.SYSTEM, markers=True)]
    lines += [Segment(f"#{at} {one}(q)\n") for at, one in enumerate(things, start=1)]
    number = rng.randrange(1, 5)
    word = "".join(rng.choices("abcdefgh", k=3))
    task = f"{things[number - 1]} {word}"
    segments = (
        Segment(layout.USER, markers=True), Segment(task), Segment(layout.THOUGHT, markers=True),
        Segment(task, True), Segment(f"{layout.USE}{number}", True, True),
        Segment(f'{layout.ACTION}{things[number - 1]}{layout.INPUT}{{"q": "', True, True),
        Segment(word, True), Segment('"', True, True), Segment("}", True, True),
    )  # fmt: skip
    return Row(tuple(lines), (Episode(segments, ((task, number),)),))


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder, rng = tmp_path_factory.mktemp("data"), random.Random(0)
    made = [row(rng) for _ in range(120)]
    vocabulary = make_vocabulary(
        (part for one in made for part in (one.functions, one.episodes[0].segments)), 340
    )
    vocabulary.save(folder / "vocabulary.json")
    packed = [one for one in (pack(each, vocabulary, 96, rng) for each in made) if one is not None]
    write_shard(folder / "rows-0.npz", packed[:100], {})
    write_shard(folder / "held.npz", packed[100:], {})
    return folder


@pytest.fixture(scope="module")
def vocabulary(data: Path) -> Vocabulary:
    return read_vocabulary(data / "vocabulary.json")


@pytest.fixture(scope="module")
def shape(vocabulary: Vocabulary) -> Shape:
    return Shape(vocabulary=len(vocabulary), width=32, layers=2, heads=2, inner=64)


def command(data: Path, out: Path, shape: Shape, options: TrainingOptions = OPTIONS) -> list[str]:
    given = (str(data), str(out), shape.model_dump_json(), options.model_dump_json())
    return [sys.executable, "-c", RUN, *given]


def test_the_network_has_as_many_weights_as_its_shape_says(shape: Shape) -> None:
    network = make_network(shape)
    assert sum(one.numel() for one in network.parameters()) == shape.parameters


def test_an_episode_does_not_see_its_neighbours(shape: Shape) -> None:
    torch = load("torch")
    network = make_network(shape).eval()
    ids = torch.tensor([[5, 6, 7, 8, 9, 10]])
    seen = torch.ones(6, 6, dtype=torch.bool).tril()
    seen[4:, 2:4] = False
    mask = torch.zeros(6, 6).masked_fill(~seen, -1e4)[None, None]
    places = torch.tensor([[0, 1, 2, 3, 2, 3]])
    both = network(ids, places, mask, torch.tensor([5]))
    alone = network(
        ids[:, [0, 1, 4, 5]], torch.arange(4)[None],
        torch.zeros(4, 4).masked_fill(~torch.ones(4, 4, dtype=torch.bool).tril(), -1e4)[None, None],
        torch.tensor([3]),
    )  # fmt: skip
    torch.testing.assert_close(both, alone, atol=1e-5, rtol=1e-4)


def test_it_learns(data: Path, tmp_path: Path, shape: Shape, vocabulary: Vocabulary) -> None:
    options = TrainingOptions(steps=150, rows=16, validate_every=50, warmup=10)
    train(
        shape, vocabulary, [data / "rows-0.npz"], data / "held.npz", tmp_path, options,
        compiled=False,
    )  # fmt: skip
    curve = [json.loads(line) for line in (tmp_path / CURVE).read_text().splitlines()]
    assert [one["step"] for one in curve] == [50, 100, 150]
    assert curve[-1]["loss"] < 0.5 * curve[0]["loss"] or curve[-1]["loss"] < 0.1
    assert curve[-1]["seen"] > curve[0]["seen"] > 50 * 16
    assert curve[-1]["tokens"] > curve[0]["tokens"]
    assert "held out" in (tmp_path / PICTURE).read_text()
    about = json.loads((tmp_path / ABOUT).read_text())
    assert about["steps"] == 150
    assert about["tokens"] > 0


def test_a_killed_training_goes_on_and_ends_as_if_nothing_had_been(
    data: Path, tmp_path: Path, shape: Shape
) -> None:
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    subprocess.run(command(data, whole, shape), check=True, capture_output=True, timeout=300)
    seen: list[int] = []
    for stop in (4, 7):
        run = subprocess.Popen(command(data, killed, shape), stdout=subprocess.PIPE, text=True)
        assert run.stdout is not None
        with run.stdout:
            for count, line in enumerate(run.stdout, start=1):
                seen.append(int(line.split()[0]))
                if count == stop:
                    run.send_signal(signal.SIGKILL)
                    break
        run.wait(60)
    done = subprocess.run(
        command(data, killed, shape), check=True, capture_output=True, text=True, timeout=300
    )
    assert int(done.stdout.split()[0]) > seen[-1] - 1 > 6
    read = load("safetensors.numpy").load_file
    one, other = (read(str(out / WEIGHTS)) for out in (whole, killed))
    for name, values in one.items():
        np.testing.assert_array_equal(values, other[name], err_msg=name)


def test_other_settings_and_a_damaged_checkpoint_are_refused(
    data: Path, tmp_path: Path, shape: Shape, vocabulary: Vocabulary
) -> None:
    options = OPTIONS.model_copy(update={"steps": 2})

    def again(given: TrainingOptions) -> None:
        train(
            shape, vocabulary, [data / "rows-0.npz"], data / "held.npz", tmp_path, given,
            compiled=False,
        )  # fmt: skip

    again(options)
    with pytest.raises(DataError, match="other settings"):
        again(options.model_copy(update={"seed": 1}))
    path = tmp_path / CHECKPOINT
    path.write_bytes(path.read_bytes()[:500])
    with pytest.raises(DataError, match="cannot read the checkpoint"):
        again(options)


def test_at_most_two_minutes_of_work_are_lost() -> None:
    assert SAVE_SECONDS + 10 < 120


def test_a_shard_that_breaks_in_the_middle_is_named_and_what_was_trained_is_kept(
    data: Path, tmp_path: Path, shape: Shape, vocabulary: Vocabulary
) -> None:
    options = OPTIONS.model_copy(update={"steps": 8, "rows": 20})
    files = [tmp_path / f"rows-{at}.npz" for at in range(2)]
    for file in files:
        file.write_bytes((data / "rows-0.npz").read_bytes())
    whole = files[1].read_bytes()
    files[1].write_bytes(whole[:5000] + bytes(50) + whole[5050:])

    def work(out: str) -> Path:
        return train(
            shape, vocabulary, files, data / "held.npz", tmp_path / out, options, compiled=False
        )

    with pytest.raises(DataError, match=r"rows-1\.npz") as caught:
        work("run")
    assert "lab episodes" in caught.value.hint
    state = load("torch").load(tmp_path / "run" / CHECKPOINT, weights_only=True)
    assert state["step"] == 5
    files[1].write_bytes(whole)
    read = load("safetensors.numpy").load_file
    mended, unbroken = (read(str(work(out))) for out in ("run", "other"))
    for name, values in mended.items():
        np.testing.assert_allclose(values, unbroken[name], atol=1e-5, err_msg=name)


def test_rows_that_the_network_cannot_read_are_refused_before_training(
    data: Path, tmp_path: Path, shape: Shape, vocabulary: Vocabulary
) -> None:
    def work(shape: Shape, options: TrainingOptions, file: Path = data / "rows-0.npz") -> None:
        train(
            shape, vocabulary, [file], data / "held.npz", tmp_path / "run", options, compiled=False
        )

    for given, options, said in (
        (shape.model_copy(update={"vocabulary": 50}), OPTIONS, "another vocabulary"),
        (shape.model_copy(update={"context": 64}), OPTIONS, "have 96 tokens"),
        (shape, OPTIONS.model_copy(update={"rows": 101}), "no shard has the 101 rows"),
    ):
        with pytest.raises(DataError, match=said):
            work(given, options)
    write_shard(tmp_path / "odd.npz", [np.zeros((4, 96), np.int16)] * 8, {})
    with pytest.raises(DataError, match="holds no rows"):
        work(shape, OPTIONS, tmp_path / "odd.npz")
    with pytest.raises(UsageError, match="3 heads"):
        work(shape.model_copy(update={"heads": 3}), OPTIONS)


def test_a_full_disk_is_told_and_the_same_command_goes_on(
    data: Path, tmp_path: Path, shape: Shape
) -> None:
    def little_room() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, 60_000))

    options = OPTIONS.model_copy(update={"steps": 4})
    done = subprocess.run(
        command(data, tmp_path, shape, options),
        check=False, capture_output=True, text=True, timeout=300, preexec_fn=little_room,
    )  # fmt: skip
    assert done.returncode == 1
    assert "DataError: cannot write the run in" in done.stderr
    assert [one.name for one in tmp_path.iterdir() if one.suffix in {".pt", ".new"}] == []
    subprocess.run(
        command(data, tmp_path, shape, options), check=True, capture_output=True, timeout=300
    )
    assert (tmp_path / WEIGHTS).is_file()


def test_two_trainings_do_not_share_a_folder(
    data: Path, tmp_path: Path, shape: Shape, vocabulary: Vocabulary
) -> None:
    with exclusive_training(tmp_path), pytest.raises(BusyError, match="another training"):
        train(
            shape, vocabulary, [data / "rows-0.npz"], data / "held.npz", tmp_path, OPTIONS,
            compiled=False,
        )  # fmt: skip


def test_the_curve_forgets_what_a_kill_made_undone(
    data: Path, tmp_path: Path, shape: Shape, vocabulary: Vocabulary
) -> None:
    options = TrainingOptions(steps=6, rows=20, validate_every=2)
    (tmp_path / CURVE).write_text('{"step": 2, "loss": 9}\n{"step": 4, "lo')
    train(
        shape, vocabulary, [data / "rows-0.npz"], data / "held.npz", tmp_path, options,
        compiled=False,
    )  # fmt: skip
    curve = [json.loads(line) for line in (tmp_path / CURVE).read_text().splitlines()]
    assert [one["step"] for one in curve] == [2, 4, 6]
    assert curve[0]["loss"] < 9


def test_a_training_may_start_from_the_weights_of_another(
    data: Path, vocabulary: Vocabulary, tmp_path: Path
) -> None:
    shape = Shape(vocabulary=len(vocabulary), width=32, layers=1, heads=2, inner=64, context=96)
    options = TrainingOptions(steps=40, rows=4, validate_every=40, warmup=3)
    parts = (shape, vocabulary, [data / "rows-0.npz"], data / "held.npz")
    train(*parts, tmp_path / "one", options, compiled=False)
    short = options.model_copy(update={"steps": 1})
    train(*parts, tmp_path / "fresh", short, compiled=False)
    train(*parts, tmp_path / "two", short, start=tmp_path / "one", compiled=False)
    lossy, better = (
        json.loads((tmp_path / name / ABOUT).read_text("utf-8")) for name in ("fresh", "two")
    )
    assert better["loss"] < lossy["loss"]
    assert better["started_from"]["steps"] == 40
    assert "started_from" not in lossy
    with pytest.raises(DataError, match="cannot start from"):
        train(*parts, tmp_path / "three", short, start=tmp_path / "none", compiled=False)
