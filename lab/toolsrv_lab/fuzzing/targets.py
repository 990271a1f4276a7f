"""All targets, in the order they are run."""

from __future__ import annotations

from toolsrv_lab.fuzzing import calls, catalogs, policies, readers, recordings

TARGETS = (
    *calls.TARGETS,
    *policies.POLICY_TARGETS,
    *policies.ADDRESS_TARGETS,
    *recordings.RESPONSE_TARGETS,
    *recordings.RECORDING_TARGETS,
    *catalogs.TARGETS,
    *readers.TARGETS,
)
