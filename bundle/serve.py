"""The program that the bundle's host starts: ``toolsrv serve`` on stdio."""

from __future__ import annotations

import sys

from toolsrv.cli.main import main

if __name__ == "__main__":
    sys.argv = ["toolsrv", "serve"]
    main()
