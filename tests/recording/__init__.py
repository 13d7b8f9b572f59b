"""Calls of AWS on the wire: proxies before the servers of a laptop cloud, and what IAM sees."""
