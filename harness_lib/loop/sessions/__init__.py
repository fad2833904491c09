"""Sessions: directories of Markdown files, of the format that the original reads and writes."""
