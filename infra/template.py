"""The deployment as a CloudFormation template with parameters, for those without the CDK.

`make template` writes into out/template two templates (one lists keys, the other builds key indexes
as well; a stack of the first can be updated to the second), and the code of both as zip files. All
of it is uploaded to one prefix of a bucket.
"""

import json
import shutil
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from aws_cdk import (
    App,
    CfnCondition,
    CfnParameter,
    CfnResource,
    DefaultStackSynthesizer,
    Fn,
    ICfnRuleConditionExpression,
    Stack,
)
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_sns as sns
from constructs import Construct

from . import limits
from .config import Config
from .config_values import LOG_RETENTION_DAYS, ConfigError
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
PREFIX = "keyhop/"
"""The default prefix of the uploaded objects."""
TABLE_NAME = "[a-zA-Z0-9_.-]{3,255}"
MAX_COST = "KEYHOP_MAX_COST"
"""The variable of functions with the setting maxCost."""


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
        CfnParameter(self, "CodeBucket", description="The bucket of this region that has the code")
        CfnParameter(self, "CodePrefix", default=PREFIX, description="What its objects begin with")
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
        self._add_alarm_email()

    def _add_alarm_email(self) -> None:
        email = CfnParameter(
            self, "AlarmEmail", default="", description="The address for alarms, or nothing"
        )
        (topic,) = (each.ref for each in self.node.find_all() if isinstance(each, sns.CfnTopic))
        subscription = sns.CfnSubscription(
            self,
            "AlarmsByEmail",
            topic_arn=topic,
            protocol="email",
            endpoint=email.value_as_string,
        )
        subscription.cfn_options.condition = CfnCondition(
            self, "HasAlarmEmail", expression=_is_given(email)
        )

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
        condition = CfnCondition(self, f"HasTable{number}", expression=_is_given(parameter))
        name = Fn.condition_if(condition.logical_id, parameter.value_as_string, Fn.ref("Table1"))
        return name.to_string()


def _is_given(parameter: CfnParameter) -> ICfnRuleConditionExpression:
    """Return the condition that a parameter is not empty."""
    return Fn.condition_not(Fn.condition_equals(parameter.value_as_string, ""))


def _add_options(template: Mapping[str, Any]) -> None:
    """Add parameters for the settings that are numbers, with the defaults of keyhop.json."""
    template["Parameters"]["MaxCost"] = {
        "Type": "Number",
        "Default": Config.max_cost,
        "MinValue": 0.01,
        "Description": "The maximum cost of a run in dollars, if its input has none",
    }
    template["Parameters"]["LogRetentionDays"] = {
        "Type": "Number",
        "Default": Config.log_retention_days,
        "AllowedValues": [*LOG_RETENTION_DAYS],
        "Description": "The days for which logs are kept",
    }
    for resource in template["Resources"].values():
        properties = resource.get("Properties", {})
        variables = properties.get("Environment", {}).get("Variables", {})
        if MAX_COST in variables:
            variables[MAX_COST] = {"Ref": "MaxCost"}
        if resource["Type"] == "AWS::Logs::LogGroup":
            properties["RetentionInDays"] = {"Ref": "LogRetentionDays"}


def write(folder: Path) -> None:
    """Write both templates and the zip files of their code, and print the progress.

    A zip file beside the folder has all of it, for somebody who has no checkout.

    Raises:
        ConfigError: A template is too large.
        LayerError: The layer of packages could not be built.
    """
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for number, (name, with_key_index) in enumerate(TEMPLATES.items(), 1):
        print(f"Template {number} of {len(TEMPLATES)}: {name} ...", flush=True)
        with tempfile.TemporaryDirectory() as assembly:
            app = App(outdir=assembly, analytics_reporting=False, stack_traces=False)
            TemplateStack(app, NAME, with_key_index)
            template = app.synth().get_stack_by_name(NAME).template
            _add_options(template)
            limits.check_template(template, MOST_TABLES)
            (folder / f"{name}.template.json").write_text(json.dumps(template, indent=1) + "\n")
            files = json.loads((Path(assembly) / f"{NAME}.assets.json").read_text())["files"]
            for digest, file in files.items():
                if file["source"]["packaging"] == "zip" and not (folder / f"{digest}.zip").exists():
                    unpacked = Path(assembly) / file["source"]["path"]
                    print(f"Code of {name}: {digest[:8]}.zip ...", flush=True)
                    shutil.make_archive(str(folder / digest), "zip", unpacked)
    print(f"All files in one: {folder.name}.zip ...", flush=True)
    shutil.make_archive(str(folder), "zip", folder)


def launch_link(bucket: str, region: str) -> str:
    """Return the address of the console's page that creates a stack of the first template."""
    name, *_ = TEMPLATES
    query = {
        "templateURL": f"https://{bucket}.s3.{region}.amazonaws.com/{PREFIX}{name}.template.json",
        "stackName": NAME,
        "param_CodeBucket": bucket,
    }
    console = f"https://{region}.console.aws.amazon.com/cloudformation/home?region={region}"
    return f"{console}#/stacks/quickcreate?{urlencode(query)}"


def main(bucket: str = "BUCKET", region: str = "REGION") -> int:
    """Write the templates to out/template, and print the next steps.

    Args:
        bucket, region: The names in these steps.
    """
    print("This takes half a minute to two minutes.", flush=True)
    try:
        write(OUT)
    except (ConfigError, LayerError) as error:
        print(error, file=sys.stderr)
        return 1
    folder = OUT.relative_to(ROOT)
    print(
        f"""Written to {folder}, and all of it to {folder}.zip, for somebody without a checkout.
Upload it to a bucket of yours, in the region of the tables:

  aws s3 cp --recursive {folder} s3://{bucket}/{PREFIX}

Then create the stack in the console, where you name the tables:

  {launch_link(bucket, region)}

or with a command:

  aws cloudformation deploy --region {region} --stack-name {NAME} --capabilities CAPABILITY_IAM \\
    --template-file {folder}/keyhop.template.json --s3-bucket {bucket} \\
    --parameter-overrides CodeBucket={bucket} Table1=Orders"""
    )
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
