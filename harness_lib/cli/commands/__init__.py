"""One verb a file, named as it is typed."""
