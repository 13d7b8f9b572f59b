"""Stream records of GetRecords, in the form in which Lambda hands them to a function."""

import base64
import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any


def as_event(record: Mapping[str, Any], stream: str) -> dict[str, Any]:
    """Times are numbers, binary values base64. stream: its ARN."""
    event = {**record, "eventSourceARN": stream}
    return dict(json.loads(json.dumps(event, default=_plain)))


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.timestamp()
    return base64.b64encode(value).decode("ascii")
