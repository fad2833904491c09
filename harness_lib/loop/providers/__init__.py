"""Hosts of models: what they need, and which wire they speak."""
