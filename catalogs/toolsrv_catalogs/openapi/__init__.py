"""OpenAPI documents, as catalogs."""
