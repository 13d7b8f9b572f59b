from fnmatch import fnmatchcase

import pytest
from keyhop.jobs.fleet import LINKS

from infra.config import Config, ConfigError
from tests.infra.conftest import CONTEXTS, deployed, stack_of
from tests.infra.template import BUCKET, Deployed


@pytest.fixture
def bucket(template: Deployed) -> dict:
    return template.only("AWS::S3::Bucket")


def test_results_are_encrypted_and_not_public(bucket: dict):
    properties = bucket["Properties"]
    (rule,) = properties["BucketEncryption"]["ServerSideEncryptionConfiguration"]
    assert rule["ServerSideEncryptionByDefault"]["SSEAlgorithm"] == "AES256"
    assert set(properties["PublicAccessBlockConfiguration"].values()) == {True}
    (ownership,) = properties["OwnershipControls"]["Rules"]
    assert ownership == {"ObjectOwnership": "BucketOwnerEnforced"}


def test_results_are_sent_by_tls_only(template: Deployed):
    statements = template.only("AWS::S3::BucketPolicy")["Properties"]["PolicyDocument"]["Statement"]
    denied = [statement["Condition"] for statement in statements if statement["Effect"] == "Deny"]
    assert {"Bool": {"aws:SecureTransport": "false"}} in denied
    assert {"NumericLessThan": {"s3:TlsVersion": 1.2}} in denied
    assert all(statement["Principal"] in ("*", {"AWS": "*"}) for statement in statements)
    assert not [statement for statement in statements if statement["Effect"] == "Allow"]


def test_old_runs_and_unfinished_uploads_expire(bucket: dict):
    rules = {rule["Id"]: rule for rule in bucket["Properties"]["LifecycleConfiguration"]["Rules"]}
    assert rules["ForgetOldRuns"]["Prefix"] == "runs/"
    assert rules["ForgetOldRuns"]["ExpirationInDays"] == 90
    uploads = rules["DropUnfinishedUploads"]["AbortIncompleteMultipartUpload"]
    assert uploads == {"DaysAfterInitiation": 90}, "a run may write its map's results until then"
    assert {rule["Status"] for rule in rules.values()} == {"Enabled"}


def test_no_file_expires_during_a_run_of_113_hours():
    with pytest.raises(ConfigError, match="a whole number from 7 to 3650"):
        Config.from_context({"tables": "Flights", "resultsRetentionDays": "6"})
    shortest = deployed(stack_of({"tables": "Flights", "resultsRetentionDays": "7"}))
    rules = shortest.only("AWS::S3::Bucket")["Properties"]["LifecycleConfiguration"]["Rules"]
    days = [rule.get("ExpirationInDays") for rule in rules]
    days += [
        rule.get("AbortIncompleteMultipartUpload", {}).get("DaysAfterInitiation") for rule in rules
    ]
    assert min(day for day in days if day is not None) * 24 > 113


def test_the_bucket_keeps_no_versions_of_deleted_parts(bucket: dict):
    assert "VersioningConfiguration" not in bucket["Properties"]


def test_results_outlive_the_stack(bucket: dict):
    """Only the empty bucket of a failed first deployment is deleted."""
    assert bucket["DeletionPolicy"] == "RetainExceptOnCreate"
    assert bucket["UpdateReplacePolicy"] == "Retain"


def test_results_are_deleted_with_the_stack_if_the_context_sets_it(unscheduled: Deployed):
    assert unscheduled.only("AWS::S3::Bucket")["DeletionPolicy"] == "Delete"


def test_no_custom_resource_empties_the_bucket(template: Deployed):
    """auto_delete_objects would add a function of the CDK, in another runtime."""
    assert not template.of_type("Custom::S3AutoDeleteObjects")
    functions = template.properties_of("AWS::Lambda::Function")
    assert {function["Runtime"] for function in functions} == {"python3.13"}


def test_athena_finds_the_parts_of_a_run_without_a_crawler(template: Deployed):
    table = template.resolve(template.only("AWS::Glue::Table")["Properties"])["TableInput"]
    parameters = table["Parameters"]
    assert parameters["projection.enabled"] == "true"
    assert parameters["projection.run.type"] == "injected"
    assert parameters["storage.location.template"] == f"s3://{BUCKET}/runs/${{run}}/links/"
    assert [column["Name"] for column in table["PartitionKeys"]] == ["run"]


def test_athena_reads_only_the_parts_of_the_result(template: Deployed):
    """The folder can also contain parts of an abandoned worker."""
    storage = template.only("AWS::Glue::Table")["Properties"]["TableInput"]["StorageDescriptor"]
    assert storage["InputFormat"].endswith(".SymlinkTextInputFormat")
    assert LINKS == "links/parts.txt"


def test_athena_reads_each_line_as_one_column(template: Deployed):
    """The name of the key attribute differs between tables, so no column can have it."""
    table = template.only("AWS::Glue::Table")["Properties"]["TableInput"]
    storage = table["StorageDescriptor"]
    assert [(c["Name"], c["Type"]) for c in storage["Columns"]] == [("line", "string")]
    assert storage["SerdeInfo"]["SerializationLibrary"].endswith("LazySimpleSerDe")
    # Of Hive's separators, "1" is the control character that JSON always escapes.
    assert storage["SerdeInfo"]["Parameters"] == {"serialization.format": "1"}


def test_the_table_depends_on_its_database(template: Deployed):
    (database,) = template.of_type("AWS::Glue::Database")
    assert database in template.only("AWS::Glue::Table")["DependsOn"]
    assert template.body["Outputs"]["GlueDatabase"]["Value"] == "keyhop"
    assert template.body["Outputs"]["GlueTable"]["Value"] == "keys"


@pytest.mark.prove
def test_a_deployment_can_use_the_bucket_of_an_earlier_one():
    """It then has the registry of key indexes: earlier table settings and places of sentinels."""
    template = deployed(stack_of({**CONTEXTS["kept"], "resultsBucket": "keyhop-results-1a2b"}))
    assert not template.of_type("AWS::S3::Bucket")
    assert template.environment("ManageIndex")["KEYHOP_BUCKET"] == "keyhop-results-1a2b"
    entry = "arn:aws:s3:::keyhop-results-1a2b/key-index/Orders-1a2b/entry.json"
    (written,) = (
        statement
        for statement in template.statements("ManageIndex")
        if statement.get("Sid", "").startswith("WriteDownWhatIsKnown")
    )
    assert fnmatchcase(entry, written["Resource"][0])
