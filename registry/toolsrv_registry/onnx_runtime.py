"""onnxruntime, loaded when it is first needed, and without its call home.

Its wheels for Linux (1.32 is one) collect events in ``~/.cache/Microsoft`` and send them, with a
hash of the device and the path of the interpreter, to their maker. Only a variable of the
environment that is there before the library is loaded keeps it from that: its own
``disable_telemetry_events`` comes too late. So nothing else imports it.
"""

from __future__ import annotations

import importlib
import os
from typing import Any


def onnxruntime(module: str = "onnxruntime") -> Any:
    """Return the library, or the module of it that is named."""
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    return importlib.import_module(module)
