"""The latest report on each table of a deployment, for a dashboard.

A run's files are deleted with the run. These remain until the next report on the table.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from keyhop.dynamodb.endpoint import TABLE_ARN
from keyhop.storage.s3 import Bucket
from keyhop.storage.store import Store

REPORT, PAGE = "report.json", "report.html"
"""The names of the files that the command writes too."""
WIDGETS = {"light": "widget-light.html", "dark": "widget-dark.html"}
"""The files that CloudWatch shows, by the theme of its console."""


@dataclass(frozen=True, slots=True)
class Latest:
    """The latest report on one table."""

    store: Store

    def report(self) -> bytes | None:
        """Return the report as JSON; None if there is none yet."""
        return self.store.read(REPORT)

    def widget(self, theme: str) -> str | None:
        """Return the page of a theme; an unknown theme gives the light one."""
        content = self.store.read(WIDGETS.get(theme, WIDGETS["light"]))
        return None if content is None else content.decode()

    def keep(self, files: Mapping[str, str]) -> None:
        """Replace the files of the previous report."""
        for name, content in files.items():
            self.store.replace(name, content.encode())


def latest_in(s3: Any, bucket: str, table: str) -> Latest:
    """Return the latest report on a table.

    Args:
        s3: A client of S3.
        bucket: The bucket of the deployment.
        table: A name or an ARN, as the deployment lists it.
    """
    return Latest(Bucket(s3, bucket, f"reports/{folder_of(table)}/"))


def folder_of(table: str) -> str:
    """Return a table's folder, with account and region if the table is of another one."""
    if not TABLE_ARN.fullmatch(table):
        return table
    _, _, _, region, account, _ = table.split(":")
    return f"{region}/{account}/{table.rpartition('/')[2]}"
