"""`python -m lab` and the `lab` command."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line and leave with its exit status."""
    from lab.cli import run_command_line

    sys.exit(run_command_line(sys.argv[1:]))


if __name__ == "__main__":
    main()
