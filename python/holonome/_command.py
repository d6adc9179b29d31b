"""The command ``holonome``."""

from __future__ import annotations

import os
import sys

from . import _holonome


def main() -> None:
    """Run the command line with this process's arguments."""
    status = _holonome.run_command(["holonome", *sys.argv[1:]])
    sys.stdout.flush()
    # Nothing of the interpreter is left to do, and threads of the engine need not be waited for.
    os._exit(status)


if __name__ == "__main__":
    main()
