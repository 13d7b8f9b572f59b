"""Write templates and definitions into a folder, for the validators of `make lint`.

    python -m tests.lint.write FOLDER

The folder gets a template for each context of the golden files, and the definition of each state
machine, with its placeholders filled in.
"""

import json
import sys
from pathlib import Path
from typing import Any

from aws_cdk import assertions

from infra.template import NAME, TEMPLATES, TemplateStack, add_options
from tests.golden.capture.contexts import CONTEXTS
from tests.infra.apps import asset_free_app
from tests.infra.conftest import deployed, stack_of

ONE_STATE = json.dumps({"StartAt": "Done", "States": {"Done": {"Type": "Succeed"}}})


def write(folder: Path) -> None:
    """Write CONTEXT.template.json and CONTEXT-MACHINE.asl.json for all contexts."""
    folder.mkdir(parents=True, exist_ok=True)
    for old_file in folder.glob("*.json"):
        old_file.unlink()
    for context, settings in CONTEXTS.items():
        template = deployed(stack_of(settings))
        (folder / f"{context}.template.json").write_text(json.dumps(readable(template.body)))
        for resource in template.of_type("AWS::StepFunctions::StateMachine").values():
            machine = template.resolve(resource["Properties"])
            definition = machine["DefinitionString"]
            for name, value in machine["DefinitionSubstitutions"].items():
                definition = definition.replace(f"${{{name}}}", str(value))
            (folder / f"{context}-{machine['StateMachineName']}.asl.json").write_text(definition)
    for name, with_key_index in TEMPLATES.items():
        stack = TemplateStack(asset_free_app(), NAME, with_key_index)
        body = assertions.Template.from_stack(stack).to_json()
        add_options(body)
        (folder / f"parameters-{name}.template.json").write_text(json.dumps(body))


def readable(body: dict[str, Any]) -> dict[str, Any]:
    """Return a template without definitions that have a Parallel state.

    cfn-lint fails at the number of a branch (1.58.0, StateMachineDefinition._fix_message).
    asl-validator reads these definitions.
    """
    copied: dict[str, Any] = json.loads(json.dumps(body))
    for resource in copied["Resources"].values():
        properties = resource.get("Properties", {})
        if '"Parallel"' in str(properties.get("DefinitionString")):
            properties["DefinitionString"] = ONE_STATE
            properties.pop("DefinitionSubstitutions")
    return copied


if __name__ == "__main__":
    write(Path(sys.argv[1]))
