"""Find, install and remove our hooks in the settings of other programs, without losing any other setting."""
