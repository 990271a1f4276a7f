"""Caller for one set of settings: network, recordings, simulation, offline catalog.

Knows which settings mean what for calls; the parts themselves are the runtime's.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from toolsrv.calls.catalog_files import FixedFile, ServerFile
from toolsrv.calls.keys import KeyStore, TokenStore
from toolsrv_registry.errors import DataError, ToolsrvError, UsageError
from toolsrv_runtime.calls.addresses import AddressResolver, parse_own_hosts
from toolsrv_runtime.calls.caller import ApiOrigin, Caller, Network
from toolsrv_runtime.calls.credentials import ANY_SECRET
from toolsrv_runtime.calls.exchange import CallLimits
from toolsrv_runtime.calls.policy import Policy, parse_rules
from toolsrv_runtime.calls.rate_limits import (
    USAGE_FILE,
    CallUsage,
    DailyLimits,
    HostLimiter,
    HostLimits,
)
from toolsrv_runtime.calls.recordings.callers import RecordingCaller, ReplayingCaller
from toolsrv_runtime.calls.recordings.storage import RECORDINGS_FILE, RecordingStore
from toolsrv_runtime.calls.transports import Connections, Proxies, offline_transports
from toolsrv_runtime.mcp_client.tool_calls import ToolServers

if TYPE_CHECKING:
    from toolsrv.settings import Settings
    from toolsrv_registry.api import Api
    from toolsrv_registry.storage.store import Store
    from toolsrv_runtime.contract.models import ChatModel, Engine
    from toolsrv_runtime.profiles import Profile

log = logging.getLogger(__name__)
Model = Callable[[], "tuple[Engine | ChatModel, Profile]"]
RETRIES = 2


def make_caller(
    settings: Settings, store: Callable[[], Store], model: Model, seed: int = 0
) -> Caller:
    """Return a caller; ``store`` is asked where an API belongs, once there is a call.

    ``model`` returns the model that simulates, ``seed`` is that of simulation by schema.

    Raises:
        UsageError: the setting ``calls`` holds what is no rule, or calls are to be invented and
            recorded.
        DataError: the recordings that are to be replayed cannot be read.
    """

    def home(api: Api) -> ApiOrigin:
        return ApiOrigin(*store().home(api.id))

    policy = Policy(rules=parse_rules(settings.calls))
    if settings.simulate != "off":
        return _simulating(settings, policy, home, model, seed)
    if settings.mode == "replay":
        return _replaying(settings, policy, home)
    limits = CallLimits(
        seconds=settings.call_seconds, read_s=settings.call_seconds, retries=RETRIES
    )
    network = None if settings.mode == "offline" else _network(settings)
    if settings.mode == "record" and (kept := _recordings(settings)) is not None:
        return RecordingCaller(
            kept,
            policy=policy,
            transports=offline_transports(),
            limits=limits,
            network=network,
            home=home,
        )
    return Caller(
        policy=policy, transports=offline_transports(), limits=limits, network=network, home=home
    )


def _replaying(settings: Settings, policy: Policy, home: Callable[[Api], ApiOrigin]) -> Caller:
    recordings = RecordingStore.open(settings.data_dir / RECORDINGS_FILE)
    return ReplayingCaller(recordings, policy=policy, home=home)


def _simulating(
    settings: Settings, policy: Policy, home: Callable[[Api], ApiOrigin], model: Model, seed: int
) -> Caller:
    from toolsrv_runtime.calls import simulation

    if settings.mode == "record":
        raise UsageError(
            "real calls are to be recorded, and calls are to be simulated",
            hint="choose one: mode record, or simulate",
        )
    inner = (
        _replaying(settings, policy, home)
        if settings.mode == "replay"
        else simulation.SilentCaller(policy=policy, transports=offline_transports(), home=home)
    )
    if settings.simulate == "schema":
        return simulation.SimulatingCaller(inner, simulation.SchemaSimulator(seed))
    return simulation.SimulatingCaller(inner, simulation.ModelSimulator(model))


def _recordings(settings: Settings) -> RecordingStore | None:
    """Open the recordings to write; what prevents it is told, and calls are made anyway."""
    try:
        return RecordingStore.open(settings.data_dir / RECORDINGS_FILE)
    except ToolsrvError as error:
        log.warning("calls are not recorded: %s (%s)", error.message, error.hint)
        return None


def tool_servers(settings: Settings) -> ToolServers:
    """Return the MCP servers that were imported; nothing is started before a tool is called."""
    return ToolServers(
        ServerFile(settings.data_dir).find,
        keys=KeyStore(settings.data_dir).secret,
        addresses=AddressResolver(own=parse_own_hosts(settings.own_hosts)),
    )


def usage(settings: Settings) -> CallUsage:
    """Return the counts of calls of a data folder, with the limits of the settings."""
    return CallUsage(settings.data_dir / USAGE_FILE, DailyLimits.parse(settings.calls_per_day))


def _network(settings: Settings) -> Network:
    addresses, keys = (
        AddressResolver(own=parse_own_hosts(settings.own_hosts)),
        KeyStore(settings.data_dir),
    )
    return Network(
        transport=Connections(addresses, proxies=Proxies.of_environment()),
        keys=keys.secret,
        known=lambda name: ANY_SECRET if _is_known(keys, name) else "",
        hosts=HostLimiter(HostLimits(rate=settings.calls_per_second), usage=usage(settings)),
        own=addresses.allows_any,
        tools=tool_servers(settings),
        fixed=FixedFile(settings.data_dir).of,
        tokens=TokenStore(settings.data_dir),
    )


def _is_known(keys: KeyStore, name: str) -> bool:
    try:
        return keys.known(name)
    except DataError:  # a damaged key file is told by the call
        return True
