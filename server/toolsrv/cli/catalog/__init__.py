"""``toolsrv catalog``: import, list, check, export and change catalogs."""
