"""The API adapters: requests to the hosts of models, and their answers."""
