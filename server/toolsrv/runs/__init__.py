"""Solves as runs: started, followed, kept on disk, found again."""
