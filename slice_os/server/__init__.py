"""The faces for other programs: an index over HTTP, and for agents over MCP."""
