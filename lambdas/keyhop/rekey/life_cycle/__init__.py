"""From `create` over `start` to `complete` or `cancel`: the tables, and who follows them."""
