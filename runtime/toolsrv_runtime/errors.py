"""The runtime's branch of the error tree.

- ``ModelError``: a model file is missing, unreadable or not what it must be.
- ``ContextError``: the prompt does not fit the model's context.
- ``GrammarError``: a function list cannot be written as a grammar (a defect of a catalog entry).
- ``ArgumentError``: the arguments of an API call are wrong; names the parameter.
- ``PolicyError``: the policy does not allow a call.
"""

from __future__ import annotations

from toolsrv_registry.errors import DataError, UsageError


class ModelError(DataError):
    """A model file is missing, unreadable or not what it must be."""


class ContextError(UsageError):
    """A prompt does not fit the model's context."""


class GrammarError(DataError):
    """A grammar for the offered functions could not be built."""


class ArgumentError(UsageError):
    """Arguments do not satisfy the API's parameters."""


class PolicyError(UsageError):
    """A call is not allowed."""
