"""The application's way to a table that is re-keyed: the router, its leases, shadow reads."""
