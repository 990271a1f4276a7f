"""Catalogs in one SQLite file: schema, rows, word index, health."""
