"""Any OpenAI-compatible server as a chat model: vLLM, llama-server, Ollama, LM Studio."""
