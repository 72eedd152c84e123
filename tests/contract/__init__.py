"""The same tests for every backend."""
