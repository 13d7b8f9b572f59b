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
"""All names begin with it, as with a stackName of keyhop.json."""
TEMPLATES = {"keyhop": False, "keyhop-key-index": True}
"""By their names: whether for key indexes."""
MOST_TABLES = 4
"""As many as the policies of a role have room for, whatever the tables are called."""
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
            rules = KeyIndex(self, "KeyIndex", keys).audits
            for number, rule in enumerate(rules[1:], 2):
                made = rule.node.default_child
                assert isinstance(made, CfnResource)
                state = Fn.condition_if(f"HasTable{number}", "ENABLED", "DISABLED")
                made.add_property_override("State", state)

    def _name(self, number: int) -> str:
        """Of a table. One that is not given is the first: to name it twice changes nothing."""
        must = number == 1
        one = CfnParameter(
            self,
            f"Table{number}",
            description="The name of a table" if must else "The name of another one, or nothing",
            allowed_pattern=TABLE_NAME if must else f"|{TABLE_NAME}",
            default=None if must else "",
        )
        if must:
            return one.value_as_string
        is_given = Fn.condition_not(Fn.condition_equals(one.value_as_string, ""))
        condition = CfnCondition(self, f"HasTable{number}", expression=is_given)
        name = Fn.condition_if(condition.logical_id, one.value_as_string, Fn.ref("Table1"))
        return name.to_string()


def write(folder: Path) -> None:
    """Both templates, and code/ with what they upload; raises ConfigError or LayerError."""
    shutil.rmtree(folder, ignore_errors=True)
    code = folder / "code"
    code.mkdir(parents=True)
    for name, with_key_index in TEMPLATES.items():
        with tempfile.TemporaryDirectory() as assembly:
            app = App(outdir=assembly, analytics_reporting=False, stack_traces=False)
            TemplateStack(app, NAME, with_key_index)
            template = app.synth().get_stack_by_name(NAME).template
            limits.check(template, MOST_TABLES)
            (folder / f"{name}.template.json").write_text(json.dumps(template, indent=1) + "\n")
            files = json.loads((Path(assembly) / f"{NAME}.assets.json").read_text())["files"]
            for digest, file in files.items():
                if file["source"]["packaging"] == "zip" and not (code / f"{digest}.zip").exists():
                    unpacked = Path(assembly) / file["source"]["path"]
                    shutil.make_archive(str(code / digest), "zip", unpacked)


def main() -> int:
    """Write them to out/template, and say what comes next."""
    try:
        write(OUT)
    except (ConfigError, LayerError) as error:
        print(error, file=sys.stderr)
        return 1
    shown = OUT.relative_to(ROOT)
    print(
        f"""Written to {shown}. To deploy, with a bucket of yours in the same region:

  aws s3 cp --recursive {shown}/code s3://BUCKET/keyhop/
  aws cloudformation deploy --stack-name {NAME} --capabilities CAPABILITY_IAM \\
    --template-file {shown}/keyhop.template.json --s3-bucket BUCKET \\
    --parameter-overrides CodeBucket=BUCKET Table1=Orders"""
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
