"""toolsrv: find APIs in a catalog, call them, and solve whole tasks with a local model.

``__all__`` is the public interface and follows Semantic Versioning. Its names are loaded when they
are first used, so that ``import toolsrv`` costs nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from toolsrv.calls.files import UnsavedError
    from toolsrv.settings import Settings
    from toolsrv.toolbox import AsyncToolbox, Toolbox
    from toolsrv.views.apis import ApiView, CheckView, ParameterView
    from toolsrv.views.readiness import Readiness
    from toolsrv.views.search import HitView, SearchView
    from toolsrv_registry.errors import (
        BusyError,
        DamagedError,
        DataError,
        MemoryShortError,
        NotFoundError,
        ToolsrvError,
        UsageError,
    )
    from toolsrv_runtime.calls.result import CallResult, Consent
    from toolsrv_runtime.contract.hints import Question
    from toolsrv_runtime.outcome import (
        BacktrackEvent,
        BudgetEvent,
        CallEvent,
        CandidatesEvent,
        Claim,
        ConsentEvent,
        Event,
        Evidence,
        KeptFile,
        Limits,
        NoteEvent,
        ObservationEvent,
        OpinionEvent,
        Outcome,
        QuestionEvent,
        ThoughtEvent,
        TreeNode,
        Usage,
    )
    from toolsrv_runtime.stop import Stop

__version__ = "0.2.0"

__all__ = [
    "ApiView",
    "AsyncToolbox",
    "BacktrackEvent",
    "BudgetEvent",
    "BusyError",
    "CallEvent",
    "CallResult",
    "CandidatesEvent",
    "CheckView",
    "Claim",
    "Consent",
    "ConsentEvent",
    "DamagedError",
    "DataError",
    "Event",
    "Evidence",
    "HitView",
    "KeptFile",
    "Limits",
    "MemoryShortError",
    "NotFoundError",
    "NoteEvent",
    "ObservationEvent",
    "OpinionEvent",
    "Outcome",
    "ParameterView",
    "Question",
    "QuestionEvent",
    "Readiness",
    "SearchView",
    "Settings",
    "Stop",
    "ThoughtEvent",
    "Toolbox",
    "ToolsrvError",
    "TreeNode",
    "UnsavedError",
    "Usage",
    "UsageError",
    "__version__",
]

_MODULES = {
    "toolsrv.calls.files": ("UnsavedError",),
    "toolsrv.views.readiness": ("Readiness",),
    "toolsrv.views.search": ("HitView", "SearchView"),
    "toolsrv.settings": ("Settings",),
    "toolsrv.toolbox": ("AsyncToolbox", "Toolbox"),
    "toolsrv.views.apis": ("ApiView", "CheckView", "ParameterView"),
    "toolsrv_registry.errors": (
        "BusyError",
        "DamagedError",
        "DataError",
        "MemoryShortError",
        "NotFoundError",
        "ToolsrvError",
        "UsageError",
    ),
    "toolsrv_runtime.calls.result": ("CallResult", "Consent"),
    "toolsrv_runtime.contract.hints": ("Question",),
    "toolsrv_runtime.outcome": (
        "BacktrackEvent",
        "BudgetEvent",
        "CallEvent",
        "CandidatesEvent",
        "ConsentEvent",
        "Event",
        "NoteEvent",
        "ObservationEvent",
        "OpinionEvent",
        "QuestionEvent",
        "ThoughtEvent",
        "Claim",
        "Evidence",
        "KeptFile",
        "Limits",
        "Outcome",
        "TreeNode",
        "Usage",
    ),
    "toolsrv_runtime.stop": ("Stop",),
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    """Load a public name from the module that defines it."""
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(_MODULE_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """Return the public names."""
    return sorted(__all__)
