"""Our hooks in the files of other programs: found, put in, taken out, and never a setting of anybody lost."""
