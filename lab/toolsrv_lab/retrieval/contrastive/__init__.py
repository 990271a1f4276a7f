"""Contrastive training of a BERT sentence encoder on texts and the documents that serve them.

Needs torch, numpy and safetensors and nothing of toolsrv, and imports its own modules relatively, so
that this folder runs alone on another machine: ``python -m contrastive --data DIR --out RUN``, with a
``DIR`` of ``toolsrv lab export pairs``.
"""
