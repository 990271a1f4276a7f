"""Calls in the server: consent, keys, files, and the caller for the settings."""
