"""Making and judging: encoder export, benchmarks and evaluations.

Imports registry, catalogs and runtime; only the command line imports this package.
"""
