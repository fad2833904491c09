"""Tools of MCP servers: what they are called, what is remembered of them, and the servers themselves.

Only `client.py` imports the package `mcp`, and is itself imported when a server is first needed.
"""
