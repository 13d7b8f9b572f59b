"""Move a live table to another primary key, and back: plan, create, start, verify, cut over."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from keyhop.rekey.routing.router import Router

__all__ = ["Router"]


def __getattr__(name: str) -> Any:
    """Import Router on first use, so that the pure modules of this package do not import AWS."""
    if name != "Router":
        raise AttributeError(name)
    from keyhop.rekey.routing.router import Router

    return Router
