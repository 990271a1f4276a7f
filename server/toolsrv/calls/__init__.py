"""Calls of APIs as a person makes them: consent, keys, files, kept responses."""
