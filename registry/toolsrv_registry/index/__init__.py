"""The vector index: Chroma, its flat copy, and builds."""
