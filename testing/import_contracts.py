"""A custom import contract: every module is pure, unless a list says that it does I/O."""

from typing import Any

from grimp import ImportGraph
from importlinter import Contract, ContractCheck, fields, output


class PureUnlessListed(Contract):
    """A package whose modules import no I/O module, directly or through others, unless listed.

    Options:
        package: The package whose modules are pure.
        io_modules: The modules that may do I/O, such as "keyhop.scan: reader sampling", or
            "keyhop.cli" for a whole package. A pure module must not be listed.
        forbidden_modules: The modules that do I/O.
    """

    type_name = "pure_unless_listed"

    package = fields.StringField()
    io_modules = fields.ListField(subfield=fields.StringField())
    forbidden_modules = fields.ListField(subfield=fields.StringField())

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:
        doing_io: set[str] = set()
        for module in set(self.forbidden_modules) & graph.modules:  # type: ignore[attr-defined]
            doing_io |= graph.find_downstream_modules(module)
        modules = graph.find_descendants(self.package)  # type: ignore[arg-type]
        listed: set[str] = set()
        needless: list[str] = []
        for line in self.io_modules:  # type: ignore[attr-defined]
            package, _, names = line.partition(":")
            named = {f"{package}.{name}".removesuffix(".__init__") for name in names.split()}
            below = named or {package, *graph.find_descendants(package)} & modules
            listed |= below
            needless += sorted(named - doing_io) if named else [package] * (not below & doing_io)
        chains = [
            min(module_chains, key=len)
            for module in sorted(doing_io & modules - listed)
            if (module_chains := self._chains(graph, module))
        ]
        problems = {"chains": chains, "needless": needless}
        return ContractCheck(kept=not (chains or needless), metadata=problems)

    def _chains(self, graph: ImportGraph, module: str) -> list[tuple[str, ...]]:
        chains = [
            graph.find_shortest_chain(module, forbidden)
            for forbidden in self.forbidden_modules  # type: ignore[attr-defined]
            if forbidden in graph.modules
        ]
        return [chain for chain in chains if chain is not None]

    def render_broken_contract(self, check: ContractCheck) -> None:
        """Print the shortest chain of imports of each module, and the needlessly listed modules."""
        problems: dict[str, Any] = check.metadata
        for chain in problems["chains"]:
            output.print_error(" -> ".join(chain))
        for module in problems["needless"]:
            output.print_error(f"{module} does no I/O: take it off the list.")
