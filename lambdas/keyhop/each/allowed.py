"""What a deployment is permitted to do for each key of a table: its setting `each`. Pure.

The deployment's context has this setting, and the IAM roles are created from it. PlanRun reads the
same setting, and refuses what the roles do not permit before any key is listed.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from keyhop.checks import Must, Truth, hint
from keyhop.dynamodb.schema import KeySpace
from keyhop.errors import CannotStart
from keyhop.jobs.request import table_name

_FUNCTION = re.compile(
    r"arn:aws[a-z-]*:lambda:[a-z0-9-]+:[0-9]{12}:function:[\w-]{1,64}(:[\w$-]+)?", re.ASCII
)
MACHINE = re.compile(
    r"arn:aws[a-z-]*:states:[a-z0-9-]+:[0-9]{12}:stateMachine:[\w-]{1,80}(:[\w-]+)?", re.ASCII
)
_QUEUE = re.compile(r"arn:aws[a-z-]*:sqs:[a-z0-9-]+:[0-9]{12}:[\w-]{1,80}(\.fifo)?", re.ASCII)
_QUEUE_URL = re.compile(
    r"https://sqs\.(?P<region>[a-z0-9-]+)\.amazonaws\.com(?P<china>\.cn)?"
    r"/(?P<account>[0-9]{12})/(?P<name>[\w-]{1,80}(\.fifo)?)",
    re.ASCII,
)


def queue_arn(queue: str) -> str:
    """Return the ARN of a queue whose URL is given; return any other text unchanged."""
    url = _QUEUE_URL.fullmatch(queue)
    if url is None:
        return queue
    region = url["region"]
    partition = "aws-cn" if url["china"] else "aws-us-gov" if "-gov-" in region else "aws"
    return f"arn:{partition}:sqs:{region}:{url['account']}:{url['name']}"


def _arns(pattern: re.Pattern[str], what: str, like: str) -> Must:
    def are(value: Any) -> bool:
        is_list = isinstance(value, list | tuple) and bool(value)
        return is_list and all(
            isinstance(arn, str) and pattern.fullmatch(queue_arn(arn)) for arn in value
        )

    return Must(are, f'a list of {what}, as ["{like}"]', lambda value: tuple(map(queue_arn, value)))


def _are_names(value: Any) -> bool:
    is_list = isinstance(value, list | tuple) and bool(value)
    return is_list and all(isinstance(name, str) and name for name in value)


@dataclass(frozen=True, slots=True)
class Allowed:
    """The permitted effects on one table.

    attributes: the attributes that a put may write, including the table's key; if empty, any.
    """

    put: Truth = False
    update: Truth = False
    delete: Truth = False
    functions: Annotated[
        tuple[str, ...],
        _arns(_FUNCTION, "ARNs of functions", "arn:aws:lambda:REGION:ACCOUNT:function:NAME"),
    ] = ()
    queues: Annotated[
        tuple[str, ...],
        _arns(_QUEUE, "ARNs or URLs of queues", "arn:aws:sqs:REGION:ACCOUNT:NAME"),
    ] = ()
    machines: Annotated[
        tuple[str, ...],
        _arns(MACHINE, "ARNs of state machines", "arn:aws:states:REGION:ACCOUNT:stateMachine:NAME"),
    ] = ()
    attributes: Annotated[
        tuple[str, ...],
        Must(_are_names, 'a list of attributes, as ["customer", "sk", "plan"]', tuple),
    ] = ()

    @property
    def is_nothing(self) -> bool:
        return self == Allowed(attributes=self.attributes)

    def to_json(self) -> dict[str, Any]:
        """Return the settings that are set, as JSON for the context."""
        settings = {name: getattr(self, name) for name in Allowed.__dataclass_fields__}
        return {name: list(v) if isinstance(v, tuple) else v for name, v in settings.items() if v}


_RECEIVERS = {
    "invoke": ("functions", "function"),
    "queue": ("queues", "queue"),
    "machine": ("machines", "state machine"),
}


def check_allowed(
    allowed: Mapping[str, Allowed], table: str, effect: Mapping[str, Any], space: KeySpace
) -> None:
    """Raise CannotStart if the deployment does not permit an effect (request.effect_options).

    allowed: the permitted effects by table, with each table named as in the setting.
    """
    may = allowed.get(table) or allowed.get(table_name(table)) or Allowed()
    kind = effect["kind"]
    if kind in _RECEIVERS:
        field, what = _RECEIVERS[kind]
        target, permitted = queue_arn(effect["target"]), getattr(may, field)
        if target not in permitted:
            suggestion = hint(target, permitted)
            raise _refused(table, f"{what} {target}", f'"{field}": ["{target}"]', suggestion)
        return
    # Deleting what a run has put needs the permission to put.
    needed = "put" if kind == "undo" else kind
    if not getattr(may, needed):
        raise _refused(table, needed, f'"{needed}": true')
    if kind == "put" and may.attributes:
        keys = [*space.names, *([space.sort.name] if space.sort else [])]
        missing = [name for name in (*keys, *effect["item"]) if name not in may.attributes]
        if missing:
            raise _refused(table, f"attribute {missing[0]} of a put", _added(may, missing))


def _added(may: Allowed, missing: Sequence[str]) -> str:
    named = ", ".join(f'"{name}"' for name in dict.fromkeys((*may.attributes, *missing)))
    return f'"attributes": [{named}]'


def _refused(table: str, what: str, setting: str, suggestion: str = "") -> CannotStart:
    note = f" ({suggestion})" if suggestion else ""
    return CannotStart(
        f"This deployment may not perform this action for each key of {table}: {what}{note}; "
        f'write {{"table": "{table}", "each": {{{setting}}}}} into "tables" in keyhop.json and '
        "deploy again."
    )
