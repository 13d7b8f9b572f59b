"""Templates: what a file says about the keys of two tables, compiled into a Transform, and back."""
