"""Runs: one solve each, queued, followed and stored."""
