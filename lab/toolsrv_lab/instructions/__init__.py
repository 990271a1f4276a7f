"""Instructions from API documents: a task in a person's words with the APIs that it needs.

No model writes these texts (a model may: any engine does, with the paper's prompt). What a person
could want of an API is taken from its documents, put into other words, given values, and set among
openings, other needs and closings. Sampling follows ToolLLM section 2.2: one tool, one category,
several categories.
"""
