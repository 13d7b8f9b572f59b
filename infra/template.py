"""The deployment as a CloudFormation template with parameters, for those without the CDK.

`make template` writes into out/template two templates (one lists keys, the other builds key indexes
as well; a stack of the first can be updated to the second), and the code of both as zip files. All
of it is uploaded to one prefix of a bucket.
"""

import json
import re
import shutil
import sys
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from aws_cdk import (
    App,
    CfnCondition,
    CfnParameter,
    DefaultStackSynthesizer,
    Fn,
    ICfnRuleConditionExpression,
    Stack,
)
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_sns as sns
from constructs import Construct
from keyhop.dynamodb.units import LEAST_COST

from . import limits
from .config import ARCHITECTURES, BUCKET, EMAIL, Config
from .config_values import CRON, LOG_RETENTION_DAYS, NEVER, RATE, ConfigError
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
VERIFICATION = "KeyIndexVerification"
"""The beginning of the logical ids of the rules that verify key indexes."""
WORKERS = ("ScanSegments", "WalkSegments")
OFF = "rate(1 day)"
"""The schedule of rules that are turned off."""
_SCHEDULE: Mapping[str, Any] = {
    "Type": "String",
    "AllowedPattern": f"{NEVER}|{RATE.pattern}|{CRON.pattern}",
    "ConstraintDescription": f"must be {NEVER}, or a schedule of EventBridge such as rate(7 days)",
}
_CONCURRENCY: Mapping[str, Any] = {
    "Type": "Number",
    "Default": 0,
    "MinValue": 0,
    "MaxValue": 1000,
}
_OPTIONS: Mapping[str, Mapping[str, Any]] = {
    "RunSchedule": {
        **_SCHEDULE,
        "Default": NEVER,
        "Description": "When the keys of each table are listed automatically: rate(...), cron(...) "
        f"in UTC, or {NEVER}",
    },
    "VerifyIndexSchedule": {
        **_SCHEDULE,
        "Default": Config.verify_index_schedule,
        "Description": f"When key indexes are verified: rate(...), cron(...) in UTC, or {NEVER}",
    },
    "MaxCost": {
        "Type": "Number",
        "Default": int(Config.max_cost),
        "MinValue": LEAST_COST,
        "Description": "The maximum cost of a run in dollars; the input of a run can give another",
    },
    "Prices": {
        "Type": "String",
        "Default": "",
        "AllowedPattern": r'|\{ *"reads": *[0-9.]+ *, *"writes": *[0-9.]+ *\}',
        "ConstraintDescription": 'must be like {"reads": 0.125, "writes": 0.625}, or empty',
        "Description": "Your own prices in dollars per million units, such as "
        '{"reads": 0.125, "writes": 0.625}; empty for list prices. The dashboard always has list '
        "prices",
    },
    "ResultsRetentionDays": {
        "Type": "Number",
        "Default": Config.results_retention_days,
        "MinValue": 7,
        "MaxValue": 3650,
        "Description": "The number of days after which S3 deletes a run",
    },
    "LogRetentionDays": {
        "Type": "Number",
        "Default": Config.log_retention_days,
        "AllowedValues": [*LOG_RETENTION_DAYS],
        "Description": "The number of days after which CloudWatch deletes log lines",
    },
    "LogLevel": {
        "Type": "String",
        "Default": Config.log_level,
        "AllowedValues": ["INFO", "WARNING", "ERROR"],
        "Description": "The lowest level of log lines; metrics are written at every level",
    },
    "Architecture": {
        "Type": "String",
        "Default": Config.architecture,
        "AllowedValues": sorted(set(ARCHITECTURES.values())),
        "Description": "The processor architecture of the functions",
    },
    "WorkerMemoryMb": {
        "Type": "Number",
        "Default": Config.worker_memory_mb,
        "MinValue": 512,
        "MaxValue": 10240,
        "Description": "The memory of the functions that read tables; 1769 is one vCPU, and they "
        "do not use more",
    },
    "WorkerTimeoutSeconds": {
        "Type": "Number",
        "Default": Config.worker_timeout_seconds,
        "MinValue": 30,
        "MaxValue": 900,
        "Description": "The time-out of the functions that read tables",
    },
    "ReservedConcurrency": {
        **_CONCURRENCY,
        "Description": "The concurrency reserved for ScanSegments, which is the maximum number of "
        "workers over all runs; 0 reserves none",
    },
    "KeeperConcurrency": {
        **_CONCURRENCY,
        "Description": "The concurrency reserved for KeepIndex, over all tables; 0 reserves none",
    },
}
"""The parameters for settings of keyhop.json, named as there, with the same defaults and bounds."""
OF_KEY_INDEXES = ("VerifyIndexSchedule", "KeeperConcurrency")
"""The parameters that only the template with key indexes has."""
_WITHOUT = {
    "RunSchedule": NEVER,
    "VerifyIndexSchedule": NEVER,
    "Prices": "",
    "ReservedConcurrency": "0",
    "KeeperConcurrency": "0",
}
"""The values of parameters that mean none."""
GROUPS = {
    "Code": ("CodeBucket", "CodePrefix"),
    "Tables": ("Table", "RunSchedule", "VerifyIndexSchedule"),
    "Costs and alarms": ("MaxCost", "Prices", "AlarmEmail"),
    "Results and logs": ("ResultsRetentionDays", "LogRetentionDays", "LogLevel"),
    "Functions": (
        *("Architecture", "WorkerMemoryMb", "WorkerTimeoutSeconds"),
        *("ReservedConcurrency", "KeeperConcurrency"),
    ),
}
"""The groups in which the console shows the parameters. The number of a table is left out."""


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
            self,
            "CodeBucket",
            description="Your bucket with the uploaded files, in the region of the stack",
            allowed_pattern=BUCKET.pattern,
            constraint_description="must be the name of a bucket",
        )
        CfnParameter(
            self,
            "CodePrefix",
            default=PREFIX,
            description="The prefix of the uploaded files in this bucket",
            allowed_pattern="(.*/)?",
            constraint_description="must be empty or end with a slash",
        )
        tables = [
            keyhop_table(
                dynamodb.Table.from_table_name(self, f"Named{number}", self._name(number)),
                key_index=with_key_index,
                run_schedule=OFF,
            )
            for number in range(1, MOST_TABLES + 1)
        ]
        keys = KeyEnumeration(self, "Default", tables=tables, stack_name=NAME)
        if with_key_index:
            KeyIndex(self, "KeyIndex", keys)
        self._add_alarm_email()

    def _add_alarm_email(self) -> None:
        email = CfnParameter(
            self,
            "AlarmEmail",
            default="",
            description="The e-mail address that receives the alarms, or empty",
            allowed_pattern=f"|{EMAIL.pattern}",
            constraint_description="must be one e-mail address, or empty",
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
            description="The name of a table in the account and region of the stack"
            if is_required
            else "The name of another table, or empty",
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


def add_options(template: dict[str, Any]) -> None:
    """Add the parameters of `_OPTIONS` to a template, and let its resources use them."""
    resources = template["Resources"]
    rules = {name: rule for name, rule in resources.items() if rule["Type"] == "AWS::Events::Rule"}
    with_key_index = any(name.startswith(VERIFICATION) for name in rules)
    options = {
        name: option
        for name, option in _OPTIONS.items()
        if with_key_index or name not in OF_KEY_INDEXES
    }
    template["Parameters"] |= options
    template["Conditions"] |= {
        f"Has{name}": {"Fn::Not": [{"Fn::Equals": [{"Ref": name}, _WITHOUT[name]]}]}
        for name in options.keys() & _WITHOUT.keys()
    }
    template["Metadata"] = {
        "AWS::CloudFormation::Interface": {"ParameterGroups": _groups(template["Parameters"])}
    }
    for name, rule in rules.items():
        is_verification = name.startswith(VERIFICATION)
        _schedule(rule["Properties"], "VerifyIndexSchedule" if is_verification else "RunSchedule")
    for resource in resources.values():
        properties = resource.get("Properties", {})
        if resource["Type"] == "AWS::Lambda::Function":
            _use_options(properties)
        elif resource["Type"] == "AWS::Logs::LogGroup":
            properties["RetentionInDays"] = _ref("LogRetentionDays")
        elif resource["Type"] == "AWS::S3::Bucket":
            old_runs, unfinished_uploads = properties["LifecycleConfiguration"]["Rules"]
            old_runs["ExpirationInDays"] = _ref("ResultsRetentionDays")
            unfinished = unfinished_uploads["AbortIncompleteMultipartUpload"]
            unfinished["DaysAfterInitiation"] = _ref("ResultsRetentionDays")


def _use_options(function: dict[str, Any]) -> None:
    """Let the properties of a function use the parameters."""
    name = function["FunctionName"].removeprefix(f"{NAME}-")
    variables = function["Environment"]["Variables"]
    function["Architectures"] = [_ref("Architecture")]
    variables["POWERTOOLS_LOG_LEVEL"] = _ref("LogLevel")
    variables["KEYHOP_PRICES"] = _if_given("Prices")
    if "KEYHOP_MAX_COST" in variables:
        variables["KEYHOP_MAX_COST"] = _ref("MaxCost")
    if "KEYHOP_ARCHITECTURE" in variables:
        variables["KEYHOP_ARCHITECTURE"] = _ref("Architecture")
        # VerifyRun does the work of a worker, but always with one vCPU.
        if name != "VerifyRun":
            variables["KEYHOP_WORKER_MEMORY_MB"] = _ref("WorkerMemoryMb")
    if name in WORKERS:
        function["MemorySize"] = _ref("WorkerMemoryMb")
        function["Timeout"] = _ref("WorkerTimeoutSeconds")
    if name == "PlanRun":
        variables["KEYHOP_MOST_WORKERS"] = _if_given("ReservedConcurrency")
    elif name == "ScanSegments":
        function["ReservedConcurrentExecutions"] = _if_given("ReservedConcurrency")
    elif name == "KeepIndex":
        function["ReservedConcurrentExecutions"] = _if_given("KeeperConcurrency")


def _schedule(rule: dict[str, Any], option: str) -> None:
    """Let a parameter decide when a rule starts an execution for its table."""
    sentence, table = rule["Description"].split("Named")
    rule["Description"] = {"Fn::Sub": f"{sentence}${{Table{table}}}"}
    # A rule that is turned off needs a valid schedule too.
    rule["ScheduleExpression"] = {"Fn::If": [f"Has{option}", _ref(option), OFF]}
    conditions = [f"Has{option}", *([f"HasTable{table}"] if table != "1" else [])]
    rule["State"] = "ENABLED"
    for condition in conditions:
        rule["State"] = {"Fn::If": [condition, rule["State"], "DISABLED"]}


def _ref(parameter: str) -> dict[str, Any]:
    return {"Ref": parameter}


def _if_given(parameter: str) -> dict[str, Any]:
    """Return the value of a parameter, or nothing if it has none."""
    return {"Fn::If": [f"Has{parameter}", _ref(parameter), _ref("AWS::NoValue")]}


def _groups(parameters: Iterable[str]) -> list[dict[str, Any]]:
    """Return the parameters in the groups that the console shows."""
    return [
        {
            "Label": {"default": label},
            "Parameters": [name for name in parameters if re.sub(r"\d", "", name) in names],
        }
        for label, names in GROUPS.items()
    ]


def write(folder: Path) -> None:
    """Write both templates and the zip files of their code, and print the progress.

    A zip file beside the folder has all of it, for use without a checkout.

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
            add_options(template)
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
