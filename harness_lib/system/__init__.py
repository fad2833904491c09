"""One facility of the machine per file; nothing here knows what the work is about."""
