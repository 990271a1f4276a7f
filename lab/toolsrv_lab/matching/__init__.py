"""Training of the matcher: which API serves a clause, and where its arguments stand."""
