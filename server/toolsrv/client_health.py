"""What ``toolsrv doctor`` looks at outside this process: its own server on stdio, and its clients."""

from __future__ import annotations

from toolsrv.clients.machine import Machine
from toolsrv.clients.registrations import (
    SLOW_S,
    Damage,
    Examiner,
    Registration,
    Verdict,
    answered,
    at_first_sight,
    registrations,
)
from toolsrv.clients.started import Start
from toolsrv.health import Finding
from toolsrv_registry.errors import ToolsrvError


def examine_clients(own: Start, machine: Machine, *, tries: bool = True) -> list[Finding]:
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


def _own(own: Start, examiner: Examiner) -> Finding:
    try:
        heard = examiner.start(own)
    except ToolsrvError as error:
        return Finding(check="server", state="fail", found=error.message, next=error.hint or "")
    found = f"{answered(heard)} on stdio"
    if heard.seconds > SLOW_S:
        todo = f"some clients wait {SLOW_S:g} s only: free some of the machine"
        return Finding(check="server", state="warn", found=found, next=todo)
    return Finding(check="server", state="ok", found=found)


def _client(one: Registration | Damage, examiner: Examiner | None, machine: Machine) -> Finding:
    check = f"client {one.client.id}"
    if isinstance(one, Damage):
        return Finding(
            check=check, state="warn", found=one.error.message, next=one.error.hint or ""
        )
    verdict = examiner.verdict(one, machine) if examiner else at_first_sight(one)
    verdict = verdict or Verdict("ok", f"{one.path}: not tried")
    return Finding(check=check, state=verdict.state, found=verdict.found, next=verdict.fix)
