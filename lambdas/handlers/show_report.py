"""The latest report on a table, as a widget of a CloudWatch dashboard.

CloudWatch invokes it with the permissions of the person who views the dashboard, shows the HTML
that it returns, and removes scripts, <use> and <iframe> (CloudWatch user guide, "Custom widgets").
"""

import html
from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext
from keyhop.errors import InvalidInput
from keyhop.jobs.request import allowed
from keyhop.report.latest import latest_in
from keyhop.storage.s3 import s3_client

from handlers.settings import JobSettings
from handlers.telemetry import function

DESCRIPTION = """\
### The latest report on the keys of a table

```yaml
table: Orders
```

`table` is a table that has `report` in keyhop.json. The report is made by the state machine
ReportKeys; nothing is read of the table for this.
"""


@function
def handler(event: dict[str, Any], context: LambdaContext) -> str:
    """Return HTML for the widget, or Markdown if its parameters ask for the description."""
    if event.get("describe"):
        return DESCRIPTION
    settings = JobSettings.from_env()
    requested = str(event.get("table", ""))
    try:
        table = allowed(requested, settings.tables)
    except InvalidInput:
        return _sentence(
            f'{requested} has no reports: write {{"table": "{requested}", "report": true}} into '
            '"tables" in keyhop.json and deploy again.'
        )
    theme = event.get("widgetContext", {}).get("theme", "")
    widget = latest_in(s3_client(), settings.bucket, table).widget(theme)
    if widget is None:
        return _sentence(
            f'There is no report on {table} yet: start ReportKeys with {{"table": "{table}"}}.'
        )
    return widget


def _sentence(text: str) -> str:
    return f"<p>{html.escape(text)}</p>"
