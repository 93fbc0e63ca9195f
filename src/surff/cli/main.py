"""Entry point of the command line; the commands are in `surff.cli.commands`.

This module imports nothing that may be missing, so that ``surff`` without the extra
says what to install.
"""

import sys

__all__ = ["main"]


def main() -> None:
    """Run the command line on ``sys.argv`` and exit.

    Raises
    ------
    SystemExit
        Always: 0 on success, 2 for wrong input, 130 after Ctrl-C.
    """
    try:
        import rich  # noqa: F401  (typer starts without it, the commands do not)

        from surff.cli.commands import app
    except ModuleNotFoundError as error:
        if error.name not in ("rich", "typer"):
            raise
        print(
            f"surff's command line needs {error.name}, which comes with the extra "
            "surff[cli]: pip install 'surff[cli]'",
            file=sys.stderr,
        )
        sys.exit(2)
    app(prog_name="surff")
