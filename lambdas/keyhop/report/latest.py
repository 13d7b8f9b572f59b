"""The latest report on each table of a deployment, beside its runs: what a dashboard shows.

A run's own files go with the run; these stay until the next report on the table is made.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from keyhop.jobs.request import TABLE_ARN
from keyhop.storage.s3 import Bucket
from keyhop.storage.store import Store

REPORT, PAGE = "report.json", "report.html"
"""As the command writes them."""
WIDGETS = {"light": "widget-light.html", "dark": "widget-dark.html"}
"""As CloudWatch may show it, by the theme of its console."""


@dataclass(frozen=True, slots=True)
class Latest:
    """Of one table."""

    store: Store

    def report(self) -> bytes | None:
        """None if there is none yet."""
        return self.store.read(REPORT)

    def widget(self, theme: str) -> str | None:
        """In light, if the theme is not known."""
        content = self.store.read(WIDGETS.get(theme, WIDGETS["light"]))
        return None if content is None else content.decode()

    def keep(self, files: Mapping[str, str]) -> None:
        """In the place of those before."""
        for name, content in files.items():
            self.store.replace(name, content.encode())


def latest_in(s3: Any, bucket: str, table: str) -> Latest:
    """table: a name or an ARN, as the deployment lists it."""
    return Latest(Bucket(s3, bucket, f"reports/{folder_of(table)}/"))


def folder_of(table: str) -> str:
    """A table of another account or region has them in its folder's name."""
    if not TABLE_ARN.fullmatch(table):
        return table
    _, _, _, region, account, _ = table.split(":")
    return f"{region}/{account}/{table.rpartition('/')[2]}"
