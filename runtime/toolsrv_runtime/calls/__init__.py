"""API calls: arguments, policy, request, exchange, result, recordings and simulation."""
