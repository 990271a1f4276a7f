"""Sphinx configuration of the documentation site.

``sphinx-build -W --keep-going -n docs build/site`` builds it; nothing is fetched. Parts of it are
generated from the code while it is built: ``_ext/toolsrv_site.py``.
"""

from __future__ import annotations

import sys
from pathlib import Path

DOCS = Path(__file__).parent
PACKAGES = ("server", "runtime", "registry", "catalogs", "lab")
sys.path[:0] = [str(DOCS / "_ext"), *(str(DOCS.parent / one) for one in PACKAGES)]

import toolsrv  # noqa: E402 - the sources of this checkout, whatever is installed

project = "toolsrv"
author = "the toolsrv authors"
project_copyright = "the toolsrv authors, Apache-2.0"
release = version = toolsrv.__version__

extensions = ["myst_parser", "toolsrv_site"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_ext"]
nitpicky = True
smartquotes = False  # they turn the dashes of options into one
suppress_warnings = [
    "myst.header",  # the packages' READMEs skip a heading level in long sections
]

myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence"]

html_theme = "furo"
html_title = f"toolsrv {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#0b6e4f", "color-brand-content": "#0b6e4f"},
    "dark_css_variables": {"color-brand-primary": "#4cc38a", "color-brand-content": "#4cc38a"},
}
