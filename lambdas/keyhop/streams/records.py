"""Conversion of stream records from GetRecords to the form in which Lambda passes them."""

import base64
import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any


def as_event(record: Mapping[str, Any], stream: str) -> dict[str, Any]:
    """Convert a record: times become numbers, and binary values become base64.

    Args:
        record: The record.
        stream: The ARN of the stream.
    """
    event = {**record, "eventSourceARN": stream}
    return dict(json.loads(json.dumps(event, default=_plain)))


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.timestamp()
    return base64.b64encode(value).decode("ascii")
