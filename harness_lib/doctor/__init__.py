"""What `harness doctor` looks at: the machine, the list, the hooks. Never writes and takes no lock."""
