"""A model's own tool-call syntax, learnt from its chat template."""
