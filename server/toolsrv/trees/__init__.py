"""Search tree of a finished run: displayed nodes, SVG and HTML page."""
