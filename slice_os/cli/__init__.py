"""The command line: a file a verb group, each verb a thin call of the library."""

from slice_os.cli.main import main

__all__ = ["main"]
