"""A test of the logical ids of the resources with data or logs, in a stack with all capabilities.

CloudFormation identifies a resource by its logical id. If the id changes, it creates a new, empty
resource and deletes or abandons the old one, so none of these ids may ever change.
"""

import pytest

from tests.infra.conftest import CONTEXTS, deployed, stack_of

FULL_CONTEXT = {
    "stackName": "Full",
    "alarmEmail": "keeper@example.com",
    "tables": [
        {"table": "Orders", "keyIndex": True, "report": True, "each": {"put": True}},
        {"table": "Audit", "sharding": {"partitionKey": "path"}},
    ],
    "rekey": [{"source": "Orders", "destination": "OrdersByTenant"}],
}
STATEFUL = {
    "AWS::DynamoDB::Table": ("ShardingMetadataFullshardsAudit7D265786",),
    "AWS::Glue::Database": ("ResultsDatabase0752A37E",),
    "AWS::Glue::Table": ("ResultsKeysFB096C9C",),
    "AWS::Logs::LogGroup": (
        "EachEachKeyLogsA020C587",
        "EachForEachKeyLogsA528BBCE",
        "EnumerationCleanUpLogsA8C227D9",
        "EnumerationEnumerateKeysLogs2F1B21C4",
        "EnumerationFinishRunLogs49A646C0",
        "EnumerationPlanRunLogs8659FA1E",
        "EnumerationScanSegmentsLogs564E4C54",
        "EnumerationVerifyRunLogs6429D088",
        "KeyIndexBuildKeyIndexLogs633256E5",
        "KeyIndexKeepIndexLogsA874B213",
        "KeyIndexManageIndexLogs33283F16",
        "KeyIndexReleaseKeeperLogs7CFF3C13",
        "KeyIndexRemoveKeyIndexLogs87D11B63",
        "KeyIndexVerifyKeyIndexLogs876B1A76",
        "KeyIndexWalkKeyIndexesLogs48CCD430",
        "KeyIndexWalkSegmentsLogs2AD0759E",
        "RekeyBackfillItemsLogs07DB3514",
        "RekeyCompareBothLogs38859C29",
        "RekeyCutOverLogs151347CE",
        "RekeyRekeyBackfillLogs0C9A1A70",
        "RekeyRekeyCutOverLogsF4BDF0E7",
        "RekeyRekeyVerifyLogs9EB36AA0",
        "RekeyReplicateLogsEAC7493D",
        "ReportsExamineTableLogs8AF50ED2",
        "ReportsReportKeysLogs0972A793",
        "ReportsSampleKeysLogsDF4DE8F6",
        "ReportsSampleTableLogs1A03993A",
        "ReportsShowReportLogs011E68BA",
        "ShardingDrainShardsLogsD6EC718D",
        "ShardingMoveShardsLogs9F345833",
        "ShardingProposeDrainsLogs6A8EA313",
        "ShardingQueryShardedLogsB4ED1412",
        "ShardingWriteShardedLogs8F6D5DBD",
    ),
    "AWS::S3::Bucket": ("ResultsBucket46167C27",),
    "AWS::SNS::Topic": ("MonitoringAlarms66989066",),
    "AWS::SQS::Queue": (
        "KeyIndexFailuresB9005C50",
        "RekeyFailuresC27FBF3B",
    ),
}


def test_resources_with_data_keep_their_logical_ids() -> None:
    stack = deployed(stack_of(FULL_CONTEXT))
    assert {kind: tuple(sorted(stack.of_type(kind))) for kind in STATEFUL} == STATEFUL


@pytest.mark.parametrize("context", ["kept", "sharded"])
def test_a_capability_replaces_no_existing_resource(context: str) -> None:
    """Adding one later must not make CloudFormation replace a bucket or a function."""
    resources = deployed(stack_of(CONTEXTS[context])).body["Resources"]
    for name, resource in deployed(stack_of(CONTEXTS["plain"])).body["Resources"].items():
        assert resources[name]["Type"] == resource["Type"]
