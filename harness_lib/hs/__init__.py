"""The command `hs`: its words, a person at its prompt, and editors that speak the Agent Client Protocol."""
