"""Where executions of ReportKeys have their files: S3 by moto."""

from tests.integration.fleet.conftest import local, runs

__all__ = ["local", "runs"]
