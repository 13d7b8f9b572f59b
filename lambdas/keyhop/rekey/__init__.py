"""A live table under another primary key, and back: plan, create, start, verify, cut over."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from keyhop.rekey.routing.router import Router

__all__ = ["Router"]


def __getattr__(name: str) -> Any:
    """Only when it is asked for: pure modules of this package are imported without AWS."""
    if name != "Router":
        raise AttributeError(name)
    from keyhop.rekey.routing.router import Router

    return Router
