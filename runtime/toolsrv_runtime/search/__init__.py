"""Tree search over API calls. Pure logic: asks for moves and observations, does no I/O."""
