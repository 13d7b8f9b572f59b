"""The side table: how it is laid out, and its reads and conditional writes."""
