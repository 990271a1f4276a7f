"""The runtime's branch of the error tree.

- ``ModelError``: a model file is missing, unreadable or not what it must be.
- ``ProfileError``: a model profile is not acceptable, or does not fit its model.
- ``ContextError``: the prompt does not fit the model's context.
- ``TaskTooLongError``: it would not even without anything but the task.
- ``RefusedLengthError``: a model server refuses a conversation for its length.
- ``GrammarError``: a function list cannot be written as a grammar (a defect of a catalog entry).
- ``ArgumentError``: the arguments of an API call are wrong; names the parameter.
- ``PolicyError``: the policy does not allow a call.
- ``CredentialsError``: the credentials of a call are missing, or of a kind that is not sent.
- ``ServerError``: a model server gave no usable reply.
"""

from __future__ import annotations

from toolsrv_registry.errors import DataError, NotFoundError, UsageError


class ModelError(DataError):
    """A model file is missing, unreadable or not what it must be."""


class NoModelFileError(ModelError, NotFoundError):
    """There is no such file."""


class NotAModelFileError(ModelError, UsageError):
    """What was named is a folder, a device, or a file of another kind."""


class ProfileError(UsageError):
    """A model profile is not acceptable, or does not fit its model."""


class ContextError(UsageError):
    """A prompt does not fit the model's context."""


class TaskTooLongError(ContextError):
    """A task does not fit the model's context, whatever else is left out."""


class RefusedLengthError(ContextError):
    """A model server refuses a conversation for its length.

    ``context``: how many tokens it has room for, 0 where it does not say.
    """

    def __init__(self, message: str, *, hint: str = "", context: int = 0) -> None:
        super().__init__(message, hint=hint)
        self.context = context


class GrammarError(DataError):
    """A grammar for the available functions could not be built."""


class ArgumentError(UsageError):
    """Arguments do not satisfy the API's parameters."""


class PolicyError(UsageError):
    """A call is not allowed."""


class CredentialsError(UsageError):
    """A call's credentials are missing, or of a kind that is not sent."""


class ServerError(ModelError):
    """A model server gave no usable reply.

    ``again``: the same request may succeed later or elsewhere. ``status``: the HTTP status that
    it answered, 0 where it answered none or a good one. ``wait_s``: how long it asks to be left
    alone, in seconds; 0 where it does not say.
    """

    def __init__(
        self,
        message: str,
        *,
        hint: str = "",
        again: bool = True,
        status: int = 0,
        wait_s: float = 0.0,
    ) -> None:
        super().__init__(message, hint=hint)
        self.again = again
        self.status = status
        self.wait_s = wait_s
