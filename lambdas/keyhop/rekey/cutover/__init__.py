"""Change the serving table, there and back: gates, a drain by markers, leases."""
