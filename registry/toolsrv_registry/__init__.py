"""Which APIs exist and which of them fit a task: types, names, store, encoder, retriever.

The ground floor: imports nothing from the other toolsrv packages.
"""
