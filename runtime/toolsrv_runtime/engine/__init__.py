"""Model engines: llama.cpp, and a scripted engine. The port is ``contract.models.Engine``."""
