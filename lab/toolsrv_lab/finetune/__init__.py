"""Fine-tuning of Hugging Face LLaMA checkpoints on ToolBench's training format, full or LoRA."""
