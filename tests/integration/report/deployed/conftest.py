"""Where executions of ReportKeys have their files: S3 in memory."""

from tests.integration.fleet.conftest import local, machine, runs

__all__ = ["local", "machine", "runs"]
