"""Keyhop: know and manage the partition keys of a DynamoDB table."""

__version__ = "0.1.0"
