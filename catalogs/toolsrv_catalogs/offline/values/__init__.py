"""Values as people write them in a sentence, turned into values a handler computes with.

One module per kind of value. Each parser raises ``UsageError`` for text that is malformed and
``NotFoundError`` for a well-formed name of nothing; the registration mechanism adds the
parameter's name.
"""
