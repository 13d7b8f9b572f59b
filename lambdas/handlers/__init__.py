"""The deployed functions, named as their states: those of a job and of sharding share a module."""
