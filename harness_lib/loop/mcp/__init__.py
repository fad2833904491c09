"""Tools of MCP servers. Only `client.py` imports the package `mcp`, when a server is first needed."""
