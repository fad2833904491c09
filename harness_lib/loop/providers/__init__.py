"""Hosts of models: what they need, and which API they speak."""
