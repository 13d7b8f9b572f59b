"""A side table in memory, for tests of the code that reads and writes it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

from keyhop.rekey.control import Control, Direction
from keyhop.rekey.side.layout import Claim, Straggler


@dataclass
class SideInMemory:
    """A side table that calls `before` with the name of each request; it may sleep or raise."""

    item: Control = field(default_factory=lambda: Control(replicating=True))
    before: Callable[[str], None] = lambda request: None
    reports: dict[str, dict[str, Any]] = field(default_factory=dict)
    marker_details: dict[str, dict[str, Any]] = field(default_factory=dict)
    figures: dict[str, Any] = field(default_factory=dict)
    batches: list[Direction] = field(default_factory=list)
    claimed: list[Claim] = field(default_factory=list)
    bypassed: list[Straggler] = field(default_factory=list)
    history: list[Control] = field(default_factory=list)
    _lock: Lock = field(default_factory=Lock)

    def control(self) -> Control:
        self.before("control")
        return self.item

    def swap(self, old: Control | None, new: Control) -> bool:
        self.before("swap")
        with self._lock:
            if old is None or self.item.revision != old.revision:
                return False
            self.item = new
            self.history.append(new)
            return True

    def report_client(self, client: str, report: Mapping[str, Any]) -> None:
        self.before("report_client")
        self.reports[client] = dict(report)

    def clients(self) -> dict[str, dict[str, Any]]:
        return dict(self.reports)

    def open_batches(self, direction: Direction) -> list[float]:
        self.before("open_batches")
        return [0.0 for batch in self.batches if batch == direction]

    def claims(self, direction: Direction, maximum: int | None = None) -> list[Claim]:
        self.before("claims")
        return [claim for claim in self.claimed if claim.direction == direction][:maximum]

    def unsettled(self, maximum: int | None = None) -> list[Straggler]:
        self.before("unsettled")
        return [each for each in self.bypassed if each.settled is None][:maximum]

    def settle(self, straggler: Straggler, control: Control) -> bool:
        self.before("settle")
        if self.item != control:
            return False
        self.bypassed.remove(straggler)
        return True

    def put_marker(self, marker: str, details: Mapping[str, Any]) -> None:
        self.before("put_marker")
        self.marker_details[marker] = dict(details)

    def see_marker(self, marker: str, details: Mapping[str, Any]) -> None:
        if marker in self.marker_details:
            self.marker_details[marker] |= {"seen": dict(details)}

    def markers(self) -> dict[str, dict[str, Any]]:
        self.before("markers")
        return {name: dict(details) for name, details in self.marker_details.items()}

    def drop_marker(self, marker: str) -> None:
        self.before("drop_marker")
        self.marker_details.pop(marker, None)

    def tell(self, name: str, content: Any) -> None:
        self.figures[name] = content

    def told(self, name: str) -> Any:
        return self.figures.get(name)
