"""Fine-tuning data of the chat model: episodes, their generators, their rendering as conversations."""
