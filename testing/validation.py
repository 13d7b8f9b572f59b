"""botocore's validator, applied to the requests that production sends without validation."""

from collections.abc import Mapping
from functools import cache
from typing import Any

import botocore.session
from botocore.model import ServiceModel
from botocore.validate import ParamValidator


def problems_of(operation: str, parameters: Mapping[str, Any]) -> str:
    """Return the problems of a DynamoDB request by the service model, or an empty text."""
    shape = _dynamodb().operation_model(operation).input_shape
    report = ParamValidator().validate(parameters, shape)
    return str(report.generate_report())


@cache
def _dynamodb() -> ServiceModel:
    return botocore.session.get_session().get_service_model("dynamodb")
