"""Proxies that record calls to the servers of a laptop cloud, and these calls as IAM sees them."""
