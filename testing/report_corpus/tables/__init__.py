"""Declarations of tables by subject; the import of a module adds its tables to the corpus."""
