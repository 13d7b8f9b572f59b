"""Golden files: what Keyhop did, and said, before it was rebuilt; see capture.py."""
