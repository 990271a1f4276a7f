"""The caller for one set of settings: the catalog that ships, and the network where it is allowed.

Knows which settings mean what for calls; the parts themselves are the runtime's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from toolsrv.key_store import KeyStore
from toolsrv_runtime.calls.addresses import Addresses
from toolsrv_runtime.calls.caller import Caller, Home, Network
from toolsrv_runtime.calls.connection import Connections
from toolsrv_runtime.calls.exchange import Limits
from toolsrv_runtime.calls.hosts import HostLimits, Hosts
from toolsrv_runtime.calls.offline import transports
from toolsrv_runtime.calls.policy import Policy, parse_rules

if TYPE_CHECKING:
    from toolsrv.settings import Settings
    from toolsrv_registry.api import Api
    from toolsrv_registry.store import Store

RETRIES = 2


def make_caller(settings: Settings, store: Callable[[], Store]) -> Caller:
    """Return a caller; ``store`` is asked where an API belongs, once there is a call.

    Raises:
        UsageError: the setting ``calls`` holds what is no rule.
    """

    def home(api: Api) -> Home:
        catalog, page = store().home(api.id)
        return Home(catalog, page)

    return Caller(
        policy=Policy(rules=parse_rules(settings.calls)),
        transports=transports(),
        limits=Limits(seconds=settings.call_seconds, read_s=settings.call_seconds, retries=RETRIES),
        network=_network(settings) if settings.mode == "live" else None,
        home=home,
    )


def _network(settings: Settings) -> Network:
    own = frozenset(one.strip().lower() for one in settings.own_hosts.split(",") if one.strip())
    addresses = Addresses(own=own)
    return Network(
        transport=Connections(addresses),
        keys=KeyStore(settings.data_dir).secret,
        hosts=Hosts(HostLimits(rate=settings.calls_per_second)),
        own=addresses.allows_any,
    )
