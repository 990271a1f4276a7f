"""Convert a Hugging Face LLaMA checkpoint to GGUF, quantise it, and merge LoRA adapters.

The error tree of the package, all of it below ``ModelError``::

    CheckpointError         a checkpoint folder cannot be converted
      NoCheckpointError     there is no checkpoint
      ArchitectureError     not a LLaMA, or a feature that GGUF cannot carry
      ShardError            a weight file is missing, incomplete or unreadable
      TensorError           a tensor is missing, superfluous or of a wrong shape or type
      TokenizerError        no tokenizer that llama.cpp reproduces
    QuantizeError           llama.cpp could not quantise a file
    WriteError              the result cannot be written
    AdapterError            a LoRA adapter is damaged, unsupported or of another base
"""

from __future__ import annotations

from toolsrv_registry.errors import UsageError
from toolsrv_runtime.errors import ModelError, NoModelFileError


class CheckpointError(ModelError):
    """A checkpoint folder cannot be converted."""


class NoCheckpointError(CheckpointError, NoModelFileError):
    """There is no such folder, or no checkpoint in it."""


class ArchitectureError(CheckpointError, UsageError):
    """The checkpoint is not a LLaMA, or one with a feature that GGUF cannot carry."""


class ShardError(CheckpointError):
    """A file with weights is missing, incomplete or unreadable."""


class TensorError(CheckpointError):
    """A tensor is missing, superfluous, of a wrong shape or of an unknown type."""


class TokenizerError(CheckpointError):
    """There is no tokenizer, or one that llama.cpp would not reproduce."""


class QuantizeError(ModelError):
    """llama.cpp could not quantise a file."""


class WriteError(ModelError):
    """The result cannot be written."""


class AdapterError(ModelError, UsageError):
    """A LoRA adapter is damaged, of a kind that is not supported, or of another base model."""
