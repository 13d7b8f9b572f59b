"""What a deployment may do for each key of a table: its setting `each`. Pure.

The same shape is read from the context, where the roles are made of it, and by PlanRun, which
refuses what the roles could not do before a key is listed.
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
    """A queue's ARN, of its URL; what is no URL of a queue is returned as it is."""
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
            isinstance(one, str) and pattern.fullmatch(queue_arn(one)) for one in value
        )

    return Must(are, f'a list of {what}, as ["{like}"]', lambda value: tuple(map(queue_arn, value)))


def _are_names(value: Any) -> bool:
    is_list = isinstance(value, list | tuple) and bool(value)
    return is_list and all(isinstance(name, str) and name for name in value)


@dataclass(frozen=True, slots=True)
class Allowed:
    """Of one table. attributes: what a put may carry, the table's key included; empty: anything."""

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
        """What of it is set, as the context has it."""
        told = {name: getattr(self, name) for name in Allowed.__dataclass_fields__}
        return {name: list(v) if isinstance(v, tuple) else v for name, v in told.items() if v}


_RECEIVERS = {
    "invoke": ("functions", "function"),
    "queue": ("queues", "queue"),
    "machine": ("machines", "state machine"),
}


def check_allowed(
    allowed: Mapping[str, Allowed], table: str, effect: Mapping[str, Any], space: KeySpace
) -> None:
    """Raises CannotStart for an effect (request.effect_options) that the deployment may not do.

    allowed: by the tables, as they are listed.
    """
    may = allowed.get(table) or allowed.get(table_name(table)) or Allowed()
    kind = effect["kind"]
    if kind in _RECEIVERS:
        field, what = _RECEIVERS[kind]
        target, known = queue_arn(effect["target"]), getattr(may, field)
        if target not in known:
            meant = hint(target, known)
            raise _refused(table, f"{what} {target}", f'"{field}": ["{target}"]', meant)
        return
    # What a run has put, whoever may put may take back.
    needed = "put" if kind == "undo" else kind
    if not getattr(may, needed):
        raise _refused(table, needed, f'"{needed}": true')
    if kind == "put" and may.attributes:
        keys = [*space.names, *([space.sort.name] if space.sort else [])]
        others = [name for name in (*keys, *effect["item"]) if name not in may.attributes]
        if others:
            raise _refused(table, f"attribute {others[0]} of a put", _added(may, others))


def _added(may: Allowed, others: Sequence[str]) -> str:
    named = ", ".join(f'"{name}"' for name in dict.fromkeys((*may.attributes, *others)))
    return f'"attributes": [{named}]'


def _refused(table: str, what: str, setting: str, meant: str = "") -> CannotStart:
    shown = f" ({meant})" if meant else ""
    return CannotStart(
        f"This deployment may not do that for each key of {table}: {what}{shown}; write "
        f'{{"table": "{table}", "each": {{{setting}}}}} into "tables" in keyhop.json and deploy '
        "again."
    )
