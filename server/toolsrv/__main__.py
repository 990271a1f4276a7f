"""``python -m toolsrv`` is ``toolsrv``."""

from __future__ import annotations

from toolsrv.cli.main import main

if __name__ == "__main__":
    main()
