"""From a Hugging Face LLaMA checkpoint to a GGUF file, and from there to a smaller one.

Reads folders and writes files; knows nothing about engines, formats or tasks. The libraries it
needs are imported when something is converted.
"""
