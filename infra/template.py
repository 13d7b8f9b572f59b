"""The deployment as a CloudFormation template with parameters, for those without the CDK.

`make template` writes into out/template two templates (one lists keys, the other builds key indexes
as well; a stack of the first can be updated to the second), and the code that both upload from.
"""

import json
import shutil
import sys
import tempfile
from pathlib import Path

from aws_cdk import App, CfnCondition, CfnParameter, CfnResource, DefaultStackSynthesizer, Fn, Stack
from aws_cdk import aws_dynamodb as dynamodb
from constructs import Construct

from . import limits
from .config_values import ConfigError
from .deployment import KeyEnumeration
from .key_index import KeyIndex
from .layer import LayerError
from .paths import ROOT
from .tables import keyhop_table

NAME = "Keyhop"
"""The prefix of all names, as stackName in keyhop.json."""
TEMPLATES = {"keyhop": False, "keyhop-key-index": True}
"""The names of the templates, and whether they are for key indexes."""
MOST_TABLES = 4
"""The number of tables that fit into the policies of a role, whatever their names."""
OUT = ROOT / "out" / "template"
TABLE_NAME = "[a-zA-Z0-9_.-]{3,255}"


class TemplateStack(Stack):
    """KeyEnumeration, and perhaps KeyIndex, over tables that parameters name.

    Logical ids are those of a KeyhopStack.
    """

    def __init__(self, scope: Construct, construct_id: str, with_key_index: bool) -> None:
        super().__init__(
            scope,
            construct_id,
            description="Keyhop: the partition keys of DynamoDB tables",
            synthesizer=DefaultStackSynthesizer(
                file_assets_bucket_name="${CodeBucket}",
                bucket_prefix="${CodePrefix}",
                generate_bootstrap_version_rule=False,
            ),
        )
        CfnParameter(
            self, "CodeBucket", description="The bucket of this region to which code/ is uploaded"
        )
        CfnParameter(
            self, "CodePrefix", default="keyhop/", description="What its objects begin with"
        )
        tables = [
            keyhop_table(
                dynamodb.Table.from_table_name(self, f"Named{number}", self._name(number)),
                key_index=with_key_index,
            )
            for number in range(1, MOST_TABLES + 1)
        ]
        keys = KeyEnumeration(self, "Default", tables=tables, stack_name=NAME)
        if with_key_index:
            rules = KeyIndex(self, "KeyIndex", keys).verifications
            for number, rule in enumerate(rules[1:], 2):
                resource = rule.node.default_child
                assert isinstance(resource, CfnResource)
                state = Fn.condition_if(f"HasTable{number}", "ENABLED", "DISABLED")
                resource.add_property_override("State", state)

    def _name(self, number: int) -> str:
        """Return the name of a table; a missing one is the first table's, which changes nothing."""
        is_required = number == 1
        parameter = CfnParameter(
            self,
            f"Table{number}",
            description="The name of a table"
            if is_required
            else "The name of another one, or nothing",
            allowed_pattern=TABLE_NAME if is_required else f"|{TABLE_NAME}",
            default=None if is_required else "",
        )
        if is_required:
            return parameter.value_as_string
        is_given = Fn.condition_not(Fn.condition_equals(parameter.value_as_string, ""))
        condition = CfnCondition(self, f"HasTable{number}", expression=is_given)
        name = Fn.condition_if(condition.logical_id, parameter.value_as_string, Fn.ref("Table1"))
        return name.to_string()


def write(folder: Path) -> None:
    """Write both templates, and code/ with their assets; may raise ConfigError or LayerError."""
    shutil.rmtree(folder, ignore_errors=True)
    code = folder / "code"
    code.mkdir(parents=True)
    for name, with_key_index in TEMPLATES.items():
        with tempfile.TemporaryDirectory() as assembly:
            app = App(outdir=assembly, analytics_reporting=False, stack_traces=False)
            TemplateStack(app, NAME, with_key_index)
            template = app.synth().get_stack_by_name(NAME).template
            limits.check_template(template, MOST_TABLES)
            (folder / f"{name}.template.json").write_text(json.dumps(template, indent=1) + "\n")
            files = json.loads((Path(assembly) / f"{NAME}.assets.json").read_text())["files"]
            for digest, file in files.items():
                if file["source"]["packaging"] == "zip" and not (code / f"{digest}.zip").exists():
                    unpacked = Path(assembly) / file["source"]["path"]
                    shutil.make_archive(str(code / digest), "zip", unpacked)


def main() -> int:
    """Write the templates to out/template, and print the next steps."""
    try:
        write(OUT)
    except (ConfigError, LayerError) as error:
        print(error, file=sys.stderr)
        return 1
    folder = OUT.relative_to(ROOT)
    print(
        f"""Written to {folder}. To deploy, with a bucket of yours in the same region:

  aws s3 cp --recursive {folder}/code s3://BUCKET/keyhop/
  aws cloudformation deploy --stack-name {NAME} --capabilities CAPABILITY_IAM \\
    --template-file {folder}/keyhop.template.json --s3-bucket BUCKET \\
    --parameter-overrides CodeBucket=BUCKET Table1=Orders"""
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
