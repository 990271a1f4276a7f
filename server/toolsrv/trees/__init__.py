"""The tree of a finished run: what is shown of it, where its nodes stand, its page."""
