"""All targets, in the order they are run."""

from __future__ import annotations

from toolsrv_lab.fuzzing import addresses, calls, catalogs, policies, readers, recorded, responses

TARGETS = (
    *calls.TARGETS,
    *policies.TARGETS,
    *addresses.TARGETS,
    *responses.TARGETS,
    *recorded.TARGETS,
    *catalogs.TARGETS,
    *readers.TARGETS,
)
