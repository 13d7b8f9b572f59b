"""Fixtures of a fleet whose files are in an in-memory S3."""

from tests.integration.fleet.conftest import local, machine, runs

__all__ = ["local", "machine", "runs"]
