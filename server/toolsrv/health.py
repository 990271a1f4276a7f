"""The checks of ``toolsrv doctor``: each says what it found and what to do next.

Checks this process, its own server on stdio, and the registered clients. A check never raises for
what it is there to find. Prints nothing.
"""

from __future__ import annotations

import importlib.util
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.metadata import version
from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel, ConfigDict

import toolsrv
from toolsrv.clients.known import ServerCommand
from toolsrv.clients.places import Machine
from toolsrv.clients.registrations import (
    SLOW_S,
    Examiner,
    Registration,
    RegistrationStatus,
    UnreadableFile,
    handshake_status,
    registrations,
    static_status,
)
from toolsrv_registry.errors import ToolsrvError

if TYPE_CHECKING:
    from toolsrv.workbench import Workbench

State = Literal["ok", "warn", "fail"]

LEAST_FREE = 1_000_000_000
SAMPLE_S = 1.0
HOSTS_SHOWN = 10
_LIBRARIES = ("llama-cpp-python", "llguidance", "chromadb", "onnxruntime", "mcp")


class Finding(BaseModel):
    """What a check found; ``next`` is what to do, empty where nothing is to be done."""

    model_config = ConfigDict(frozen=True)

    check: str
    state: State
    found: str
    next: str = ""


def examine(bench: Workbench) -> list[Finding]:
    """Return the findings of all checks, in order. Blocks for some seconds."""
    checks: dict[str, Callable[[Workbench], Finding]] = {
        "versions": _versions,
        "data folder": _data_folder,
        "catalogs": _catalogs,
        "index": _index,
        "encoder": _encoder,
        "matcher": _matcher,
        "model": measure_model,
        "prompts": _prompts,
        "cores": _cores,
        "device": _device,
        "keys": _keys,
        "calls today": _calls_today,
        "log": _log,
    }
    findings = []
    for name, check in checks.items():
        try:
            findings.append(check(bench))
        except ToolsrvError as error:
            findings.append(
                Finding(check=name, state="fail", found=error.message, next=error.hint or "")
            )
    return findings


def _versions(bench: Workbench) -> Finding:
    del bench
    python = ".".join(map(str, sys.version_info[:3]))
    libraries = ", ".join(f"{name} {version(name)}" for name in _LIBRARIES)
    found = f"toolsrv {toolsrv.__version__}, Python {python}, {libraries}"
    return Finding(check="versions", state="ok", found=found)


def _data_folder(bench: Workbench) -> Finding:
    from toolsrv_runtime.requirements import format_bytes

    folder = bench.settings.data_dir
    other = "name another folder with --data-dir or TOOLSRV_DATA_DIR"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            free = shutil.disk_usage(folder).free
    except OSError as error:
        found = f"cannot write into {folder}: {error.strerror}"
        return Finding(check="data folder", state="fail", found=found, next=other)
    found = f"{folder}, {format_bytes(free)} free"
    if free < LEAST_FREE:
        return Finding(check="data folder", state="warn", found=found, next="free some space")
    return Finding(check="data folder", state="ok", found=found)


def _catalogs(bench: Workbench) -> Finding:
    catalogs = bench.registry().store.catalogs()
    found = ", ".join(
        f"{one.name} ({one.apis} APIs{'' if one.enabled else ', disabled'})" for one in catalogs
    )
    if not any(one.enabled and one.apis for one in catalogs):
        todo = "toolsrv catalog enable NAME, or toolsrv catalog import"
        return Finding(check="catalogs", state="fail", found=found or "none", next=todo)
    return Finding(check="catalogs", state="ok", found=found)


def _index(bench: Workbench) -> Finding:
    state = bench.registry().index.status().state
    if state == "ready":
        return Finding(check="index", state="ok", found="up to date")
    todo = "toolsrv index build (until then searches go by words alone, or build it)"
    return Finding(check="index", state="warn", found=state, next=todo)


def _encoder(bench: Workbench) -> Finding:
    from toolsrv_registry.errors import DataError

    encoder = bench.registry().index.encoder
    try:
        encoder.check()
        found = encoder.name
    except DataError as error:
        todo = f"{error.hint} (until then searches go by words alone)"
        return Finding(check="encoder", state="warn", found=error.message, next=todo)
    return Finding(check="encoder", state="ok", found=found)


def _matcher(bench: Workbench) -> Finding:
    del bench
    from toolsrv_registry.errors import DataError
    from toolsrv_registry.matcher import Matcher

    matcher = Matcher()
    try:
        matcher.load()
    except DataError as error:
        todo = f"{error.hint} (until then the model that ships chooses and fills without it)"
        return Finding(check="matcher", state="warn", found=error.message, next=todo)
    return Finding(check="matcher", state="ok", found=matcher.card.name)


def measure_model(bench: Workbench) -> Finding:
    """Load the model, let it write for a second, and say how fast it does.

    Raises:
        ToolsrvError: it cannot be used.
    """
    if isinstance(bench.settings.model, str):
        return _special(bench, bench.settings.model)
    from toolsrv_runtime.contract.models import Piece

    started = time.perf_counter()
    engine, profile = bench.engine()
    loaded = time.perf_counter()
    prompt = (Piece("System: a list of words."),)
    tokens = 0
    while (spent := time.perf_counter() - loaded) < SAMPLE_S:
        reply = engine.generate(prompt, grammar="start: /[a-z ]{20,60}/", max_tokens=16)
        tokens += len(reply.tokens)
    engine.close()
    layers = getattr(engine, "gpu_layers", 0)
    found = (
        f"{engine.name} as {profile.name}, context {profile.context:,}"
        f"{f', {layers} layers on the GPU' if layers else ''}: loaded in "
        f"{loaded - started:.1f} s, {tokens / spent:.1f} tokens/s"
    )
    if tokens / spent < 1:
        todo = "choose a smaller or more quantised model: toolsrv model quantize"
        return Finding(check="model", state="warn", found=found, next=todo)
    return Finding(check="model", state="ok", found=found)


def _special(bench: Workbench, model: str) -> Finding:
    """Ask each server for its models and a short reply; read a script; a client's model is its own."""
    from toolsrv.model_list import SAMPLING
    from toolsrv_runtime.models.openai import is_url
    from toolsrv_runtime.models.openai.chat import inspect_servers

    if model == SAMPLING:
        return Finding(check="model", state="ok", found=f"{model}: the MCP client's own")
    if not is_url(model):
        engine, _ = bench.model()
        return Finding(check="model", state="ok", found=engine.name)
    servers = inspect_servers(model)
    lost = [one for one in servers if one.error]
    well = [f"{one.model} at {one.url} (calls by {one.mode})" for one in servers if not one.error]
    found = "; ".join([*well, *(one.error for one in lost)])
    state: State = "ok" if not lost else "warn" if well else "fail"
    return Finding(check="model", state=state, found=found, next=lost[0].hint if lost else "")


def _prompts(bench: Workbench) -> Finding:
    prompts = bench.prompts()
    more = "for a ToolLLaMA with its own sentences: toolsrv model prompts FILE"
    todo = more if prompts.missing else ""
    return Finding(check="prompts", state="ok", found=prompts.summary, next=todo)


def _cores(bench: Workbench) -> Finding:
    del bench
    from toolsrv_runtime.requirements import physical_cores

    return Finding(check="cores", state="ok", found=f"{physical_cores()} physical")


def _device(bench: Workbench) -> Finding:
    """Say where the model is computed, and what keeps it off a GPU."""
    from toolsrv.model_loading import with_adapter
    from toolsrv.settings import profiles_folder
    from toolsrv_runtime.gguf_models import inspect_model

    settings = bench.settings
    if isinstance(settings.model, str):
        return Finding(check="device", state="ok", found=f"that of {settings.model}")
    path, adapter = with_adapter(settings, settings.model)
    info = inspect_model(
        path,
        profile=settings.profile,
        profiles=profiles_folder(settings.data_dir),
        gpu_layers=settings.gpu_layers,
        adapter=adapter,
    )
    found = f"{info.device} ({info.gpu_note})" if info.gpu_note else info.device
    return Finding(check="device", state="ok", found=found, next=info.gpu_remedy)


def _calls_today(bench: Workbench) -> Finding:
    """Say how many calls went to each host today (UTC), and what a limit leaves of them."""
    from toolsrv.calls.caller import usage

    counts = usage(bench.settings)
    try:
        called = counts.today()
    finally:
        counts.close()
    shown = [f"{one.host}: {one.describe}" for one in called[:HOSTS_SHOWN]]
    more = len(called) - len(shown)
    found = "; ".join([*shown, *[f"{more} more hosts"] * (more > 0)]) or "none over the network"
    if any(one.left == 0 for one in called):
        todo = "wait, or allow more: toolsrv config set calls_per_day"
        return Finding(check="calls today", state="warn", found=found, next=todo)
    return Finding(check="calls today", state="ok", found=found)


def _log(bench: Workbench) -> Finding:
    """Name the logs of servers and the folder of fault logs, with their sizes."""
    from toolsrv.server_log import log_file
    from toolsrv_runtime.requirements import format_bytes

    folder = bench.settings.data_dir
    files = [log_file(folder, http=False), log_file(folder, http=True)]
    found = [f"{one} ({format_bytes(one.stat().st_size)})" for one in files if one.is_file()]
    faults = sorted((folder / "faults").glob("*.log"))
    if faults:
        found.append(f"{len(faults)} fault logs in {faults[0].parent}, the last {faults[-1].name}")
    nothing = f"nothing was logged; servers would in {files[0].parent}"
    return Finding(check="log", state="ok", found="; ".join(found) or nothing)


def _keys(bench: Workbench) -> Finding:
    from toolsrv.calls.keys import KeyStore

    file = KeyStore(bench.settings.data_dir).path
    kept = f"kept in {file} (mode 0600)"
    if importlib.util.find_spec("keyring") is None:
        return Finding(check="keys", state="ok", found=f"{kept}: keyring is not installed")
    import keyring
    from keyring.errors import KeyringError

    try:
        keeper = keyring.get_keyring()
    except KeyringError as error:
        return Finding(check="keys", state="warn", found=str(error), next=f"keys go to {file}")
    if keeper.priority <= 0:  # its stand-in for none
        return Finding(check="keys", state="ok", found=f"{kept}: this system has no keyring")
    return Finding(check="keys", state="ok", found=f"kept by {keeper.name}")


def examine_clients(own: ServerCommand, machine: Machine, *, tries: bool = True) -> list[Finding]:
    """Return a finding for the server that ``own`` starts, and one for each registered client.

    Every way of starting is tried by a real handshake, in each version of the protocol, so that the
    first answers of those servers are kept. Blocks for some seconds. Without ``tries`` nothing is
    started: only what the entries name is looked for.
    """
    examiner = Examiner() if tries else None
    clients = [_client(one, examiner, machine) for one in registrations(machine)]
    if not clients:
        todo = "toolsrv connect --list"
        clients = [Finding(check="clients", state="ok", found="none registered", next=todo)]
    return [_own(own, examiner), *clients] if examiner else clients


def _own(own: ServerCommand, examiner: Examiner) -> Finding:
    try:
        heard = examiner.start(own)
    except ToolsrvError as error:
        return Finding(check="server", state="fail", found=error.message, next=error.hint or "")
    found = f"{handshake_status(heard)} on stdio"
    if heard.seconds > SLOW_S:
        todo = f"some clients wait {SLOW_S:g} s only: free some of the machine"
        return Finding(check="server", state="warn", found=found, next=todo)
    return Finding(check="server", state="ok", found=found)


def _client(
    one: Registration | UnreadableFile, examiner: Examiner | None, machine: Machine
) -> Finding:
    check = f"client {one.client.id}"
    if isinstance(one, UnreadableFile):
        return Finding(
            check=check, state="warn", found=one.error.message, next=one.error.hint or ""
        )
    verdict = examiner.verdict(one, machine) if examiner else static_status(one)
    verdict = verdict or RegistrationStatus("ok", f"{one.path}: not tried")
    return Finding(check=check, state=verdict.state, found=verdict.found, next=verdict.fix)
