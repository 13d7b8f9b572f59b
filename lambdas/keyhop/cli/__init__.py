"""The command line: a thin user of the library."""
