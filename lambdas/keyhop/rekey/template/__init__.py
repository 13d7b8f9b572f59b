"""Templates: compile a file about the keys of two tables into a Transform."""
