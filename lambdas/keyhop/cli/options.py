"""What the commands have in common: a help in sections, numbers, and options that several take."""

import math
import re
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from importlib import import_module
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import click
from click.core import augment_usage_errors

from keyhop.retries import DEFAULT_PATIENCE_SECONDS

LEAST_RATE = 0.01
"""One page of 0.5 read units every 50 seconds."""

Decorator = Callable[[Any], Any]


class Options(SimpleNamespace):
    """What a command line says: an attribute for each option and argument, by its name."""


class Option(click.Option):
    """An option in a section of the help: `--index NAME` takes a value, `--plan` is a flag."""

    def __init__(self, names: list[str], section: str, **more: Any) -> None:
        name, _, metavar = names[0].partition(" ")
        if not metavar and "type" not in more:
            more["is_flag"] = True
        super().__init__([name, *names[1:]], metavar=metavar or None, **more)
        self.section = section


class Command(click.Command):
    """A command whose help has sections, and that takes no option for the value of another one."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """As click does, but `--output --resume` lacks a value; `--output=--resume` has one."""
        options = [one for one in self.params if isinstance(one, click.Option) and not one.is_flag]
        names = {name for option in options for name in option.opts}
        for name, value in pairwise(args):
            if name in names and re.match(r"-[^\d.]", value) and not ctx.resilient_parsing:
                raise click.BadOptionUsage(name, f"Option {name!r} requires an argument", ctx)
        with augment_usage_errors(ctx):
            return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """What index.build has checked is done by index_actions.build, which is imported now."""
        super().invoke(ctx)
        check: Any = self.callback
        actions = import_module(f"{check.__module__}_actions")
        return getattr(actions, check.__name__)(Options(**ctx.params))

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Sections in the order of their first options."""
        sections = defaultdict(list)
        for option in self.get_params(ctx):
            record = option.get_help_record(ctx)
            if record is not None and isinstance(option, click.Option):
                sections[getattr(option, "section", "Help")].append(record)
        for title, records in sections.items():
            with formatter.section(title):
                formatter.write_dl(records)


def together(*decorators: Decorator) -> Decorator:
    """Several decorators as one; their options stand in the help in this order."""

    def decorate(command: Any) -> Any:
        for one in reversed(decorators):
            command = one(command)
        return command

    return decorate


def in_section(title: str) -> Callable[..., Decorator]:
    """`click.option`, for the options of a section."""
    return partial(click.option, cls=Option, section=title)


def number(
    what: str, fits: Callable[[Any], bool], kind: Callable[[str], Any] = float
) -> Callable[[str], Any]:
    """A type of an option: the numbers that fit; what: the words for them in an error."""

    def parse(text: str) -> Any:
        with suppress(ValueError):
            value = kind(text)
            if fits(value):
                return value
        raise click.BadParameter(f"{text!r} is not {what}")

    return parse


def whole(least: int, most: int) -> Callable[[str], int]:
    """The whole numbers from `least` to `most`."""
    what = f"a whole number from {least:,} to {most:,}"
    return number(what, lambda value: least <= value <= most, int)


positive = number("a number above 0", lambda value: 0 < value < math.inf)
seconds = number("a number of seconds, 0 or more", lambda value: 0 <= value < math.inf)
share = number("a share above 0 and up to 1", lambda value: 0 < value <= 1)


def rate(text: str) -> float:
    """A rate of at least LEAST_RATE units a second."""
    value: float = positive(text)
    if value < LEAST_RATE:
        raise click.BadParameter(f"{text!r} is less than {LEAST_RATE:g} units a second")
    return value


table = click.argument("table", help="name or ARN of the table")

limit = in_section("Limits")
max_read_rate = limit(
    "--max-read-rate RRU_PER_SECOND",
    help="hold all reads together under this many read units a second",
    type=rate,
)
give_up_after = limit(
    "--give-up-after SECONDS",
    help="end when nothing but throttling and failures came for this long (default "
    f"{DEFAULT_PATIENCE_SECONDS:g})",
    type=positive,
    default=DEFAULT_PATIENCE_SECONDS,
)

output = in_section("Output")
quiet = output("--quiet", help="no progress, no summary")
reporting = together(output("--report FILE", help="write the result to FILE as JSON"), quiet)

place = in_section("Where the table is")
where = together(
    place("--region NAME", help="AWS region (default: from your AWS configuration)"),
    place("--profile NAME", help="AWS profile"),
    place(
        "--endpoint-url URL",
        help="another endpoint, such as DynamoDB Local; on this machine it needs no credentials",
    ),
)
