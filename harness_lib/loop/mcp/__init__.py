"""Tools of MCP servers: their names, the cache of their schemas, and the connections.

Only `client.py` imports the package `mcp`, and is itself imported when a server is first needed.
"""
