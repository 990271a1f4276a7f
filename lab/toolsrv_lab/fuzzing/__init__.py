"""Fuzzing what reads text from outside: one target per reader, each with the properties it keeps."""
