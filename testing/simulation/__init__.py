"""DynamoDB in memory, a network and processes, which run in the same way for the same seed."""
