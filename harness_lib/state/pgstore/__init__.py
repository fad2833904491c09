"""Keep a list in PostgreSQL, so that many machines work on it. Source: docs/many-machines.md."""
