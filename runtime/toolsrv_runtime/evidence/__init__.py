"""Trace each claim of an answer to a call result or to the task."""

from toolsrv_runtime.evidence.tracing import CLAIMS_LIMIT, SOURCE_LIMIT, Traced, trace

__all__ = ["CLAIMS_LIMIT", "SOURCE_LIMIT", "Traced", "trace"]
