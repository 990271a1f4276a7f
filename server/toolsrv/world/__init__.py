"""toolsrv as the API world of other people's research code: ToolBench's and StableToolBench's wire.

``request`` reads what comes, ``answer`` makes of it a call and a reply, ``app`` is the HTTP face,
``connections`` keeps slow and silent clients from others, ``serve`` runs it.
"""
