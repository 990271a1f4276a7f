"""Local web page of ``toolsrv serve --http``: the operations of the commands, in a browser.

Imported only where a server speaks HTTP.
"""
