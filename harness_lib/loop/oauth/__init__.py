"""Logins at providers: OAuth 2 with PKCE, for every `.conf` that says `auth=oauth`."""
