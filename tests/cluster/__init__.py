"""A real OpenSearch cluster for tests and benchmarks, without Docker."""
