"""Where a model is computed: the GPU's share, and what is said where there is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolsrv_runtime.engine.hardware import (
    Device,
    backends,
    devices,
    fitting_layers,
    gpu_hardware,
    place_layers,
    rebuild_command,
)
from toolsrv_runtime.engine.llama import LlamaEngine
from toolsrv_runtime.gguf_models import SHIPPED_MODEL, inspect_model, load_engine
from toolsrv_runtime.requirements import Footprint

GB = 10**9
NEEDS = Footprint(weights=8 * GB, per_token=100_000, scratch=GB // 2)
CPU = Device("CPU", "a processor", "cpu", 32 * GB, 32 * GB)


def gpu(free: int) -> Device:
    return Device("CUDA0", "NVIDIA H100", "gpu", free, 80 * GB)


def test_this_build_names_its_processor() -> None:
    assert "CPU" in backends()
    assert any(one.kind == "cpu" and one.total > 0 for one in devices())


@pytest.mark.parametrize(
    ("free", "asked", "layers"),
    [
        (80 * GB, None, 33),
        (80 * GB, 10, 10),
        (6 * GB, None, 18),
        (6 * GB, 33, 33),
        (80 * GB, 99, 33),
    ],
)
def test_as_many_layers_go_to_the_gpu_as_fit_or_as_are_asked_for(
    free: int, asked: int | None, layers: int
) -> None:
    found = place_layers(
        asked=asked,
        layers=32,
        needs=NEEDS,
        cells=10_000,
        built=("CPU", "CUDA"),
        found=(CPU, gpu(free)),
    )
    assert found.gpu_layers == layers
    assert "NVIDIA H100" in found.device
    assert bool(found.why) == (layers < 33 or free < 10 * GB)
    assert bool(found.remedy) == (free < 10 * GB and asked is not None)


def test_a_gpu_that_tells_no_memory_gets_the_whole_model() -> None:
    assert fitting_layers(32, NEEDS, 10_000, 0) == 33


def test_a_gpu_without_room_is_named(  # the processor then computes
) -> None:
    found = place_layers(
        asked=None, layers=32, needs=NEEDS, cells=10_000, built=("CUDA",), found=(gpu(GB),)
    )
    assert (found.gpu_layers, found.device) == (0, "processor")
    assert "no layer fits" in found.why
    off = place_layers(asked=0, layers=32, needs=NEEDS, cells=9, built=("CUDA",), found=(gpu(GB),))
    assert "gpu_layers is 0" in off.why


@pytest.mark.parametrize(
    ("built", "hardware", "why", "remedy"),
    [
        (("CPU",), "CUDA", "built without a GPU backend", rebuild_command("CUDA")),
        (("CPU",), "VULKAN", "built without a GPU backend", rebuild_command("VULKAN")),
        (("CPU",), "", "no GPU was seen", ""),
        (("CPU", "CUDA"), "CUDA", "built for CUDA, which found no GPU", ""),
    ],
)
def test_without_a_gpu_it_is_said_why_and_what_to_do(
    built: tuple[str, ...], hardware: str, why: str, remedy: str
) -> None:
    found = place_layers(
        asked=None,
        layers=32,
        needs=NEEDS,
        cells=10_000,
        built=built,
        found=(CPU,),
        hardware=hardware,
    )
    assert (found.gpu_layers, found.device, found.remedy) == (0, "processor", remedy)
    assert why in found.why


def test_the_rebuild_commands_name_the_backend() -> None:
    assert rebuild_command("CUDA") == (
        'CMAKE_ARGS="-DGGML_CUDA=on" pip install --force-reinstall --no-cache-dir llama-cpp-python'
    )


def test_a_graphics_card_is_seen_by_its_driver(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    assert gpu_hardware(system="darwin", root=tmp_path) == "METAL"
    assert gpu_hardware(system="linux", root=tmp_path) == ""
    (tmp_path / "dev/dri").mkdir(parents=True)
    assert gpu_hardware(system="linux", root=tmp_path) == ""
    (tmp_path / "dev/dri/renderD128").touch()
    assert gpu_hardware(system="linux", root=tmp_path) == "VULKAN"
    (tmp_path / "proc/driver/nvidia").mkdir(parents=True)
    (tmp_path / "proc/driver/nvidia/version").touch()
    assert gpu_hardware(system="linux", root=tmp_path) == "CUDA"


def test_what_lies_on_the_gpu_is_not_counted_for_the_processor() -> None:
    half = NEEDS.on_host(16, 32)
    assert (half.weights, half.per_token, half.scratch) == (4 * GB, 50_000, GB // 2)
    assert NEEDS.on_host(33, 32).weights == 0


def test_layers_and_threads_come_from_the_profile_unless_they_are_asked_for(
    tmp_path: Path,
) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('base = "compact"\ngpu_layers = 3\nthreads = 1\n')
    info = inspect_model(profile=str(path))
    assert (info.profile.gpu_layers, info.profile.threads) == (3, 1)
    asked = inspect_model(profile=str(path), gpu_layers=0)
    assert asked.profile.gpu_layers == 0
    assert asked.reasons["gpu_layers"] == "asked for"
    assert (info.gpu_layers, info.layers) == (0, 7)  # of a build without a GPU
    engine, _ = load_engine(profile=str(path))
    assert engine.generate((), grammar='start: "a"\n', max_tokens=4).text == "a"
    engine.close()


def test_a_gpu_that_has_no_room_after_all_leaves_the_model_to_the_processor(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("toolsrv_runtime.gguf_models.devices", lambda: (CPU, gpu(80 * GB)))
    tried = []
    start = LlamaEngine.__init__

    def fails_on_a_gpu(self: LlamaEngine, path: Path, **given: object) -> None:
        tried.append(given["gpu_layers"])
        if given["gpu_layers"]:
            from toolsrv_runtime.errors import ModelError  # noqa: PLC0415

            raise ModelError("no memory")
        start(self, path, **given)  # type: ignore[arg-type]

    monkeypatch.setattr(LlamaEngine, "__init__", fails_on_a_gpu)
    engine, _ = load_engine(SHIPPED_MODEL, threads=1)
    assert tried == [7, 0]
    engine.close()
