"""Estimates of a table from samples, with intervals. Random numbers are an argument."""
