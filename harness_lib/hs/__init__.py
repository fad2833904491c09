"""The command `hs`: its words, the user at its prompt, and editors that speak the Agent Client Protocol."""
