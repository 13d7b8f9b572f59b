"""The life cycle of a re-key, from `create` and `start` to `complete` or `cancel`."""
