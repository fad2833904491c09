"""What the files of the sources say of hosts of models: variants, stored credentials, and models."""
