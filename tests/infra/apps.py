"""Apps to synthesize stacks in; their output is deleted with this process."""

import tempfile
from functools import cache

from aws_cdk import App

WITHOUT_ASSETS = {"aws:cdk:bundling-stacks": []}
"""The context that the CDK sets for commands that build no assets."""


def asset_free_app() -> App:
    """Return an app that builds no assets."""
    folder = tempfile.mkdtemp(dir=_folder().name)
    return App(context=WITHOUT_ASSETS, outdir=folder, stack_traces=False)


@cache
def _folder() -> "tempfile.TemporaryDirectory[str]":
    return tempfile.TemporaryDirectory(prefix="keyhop-cdk-")
