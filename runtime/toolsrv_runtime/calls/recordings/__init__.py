"""Calls kept with their results, to be given again: keys, store, callers, packs."""
