"""What continues a prompt: the Engine port and its implementations."""
