"""A report in its three forms, and what has changed since an older one. Pure."""
