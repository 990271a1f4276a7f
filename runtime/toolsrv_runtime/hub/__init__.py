"""GGUF files from a Hugging Face hub."""
