"""The checks by name: claims.md names them, and a complete start of the suite has them all.

A check may be made several times, on several tables. One that needs what a laptop has not (ways.py)
is skipped there, by name and with the reason.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Check:
    """shows: the claim about the service. needs: an ability of the other side (ways.LACKS)."""

    shows: str
    needs: str | None = None


CHECKS: dict[str, Check] = {
    # The service itself
    "hop": Check("{last key, greatest sort key} with a Segment hops on, for 0.5 read units"),
    "hop-from-large": Check("a hop leaves a collection larger than a page"),
    "foreign-segment": Check("a start key of another segment is refused"),
    "greatest-sort-key": Check("items at the greatest sort key are found, and come last"),
    "empty-segment": Check("a page of an empty segment is charged 0.5 read units"),
    "table-identity": Check("DescribeTable tells a table from others of its name"),
    "index-segments": Check("an index, segment by segment, has each item exactly once"),
    "table-members": Check("DescribeTable has no member that Keyhop does not know"),
    "vector-index": Check(
        "a table with a vector index takes items without a vector, such as sentinels", "vectors"
    ),
    "bulk-put-records": Check(
        "each item of a bulk put is a record of the table's stream", "bulk puts"
    ),
    # keyhop keys
    "command": Check("keyhop keys lists each key exactly once"),
    # EnumerateKeys
    "run": Check("an execution lists each key exactly once; output, manifest and parts agree"),
    "run-resume": Check("resume goes on with a run whose execution was stopped"),
    "run-redrive": Check("a redrive goes on with a run that was stopped", "redrive"),
    "run-groups": Check("several groups at once, and a check of the result"),
    "run-plan": Check("dryRun estimates, and begins nothing"),
    "run-refusal": Check("an unknown field is refused by name"),
    "run-allow-list": Check("a table that is not allowed is refused"),
    "run-budget": Check("a spent budget fails; resume ends with the same keys"),
    "run-large-part": Check("a part above 8 MB is uploaded in pieces, and whole"),
    # Around the runs
    "athena": Check("Athena reads the keys of a run, and none of one that is not finished", "glue"),
    "metrics-at-error": Check("with logLevel ERROR the functions' metrics arrive", "cloudwatch"),
    "alarm-at-error": Check("with logLevel ERROR a failed run raises its alarm", "cloudwatch"),
    "report-metrics": Check("a table's metrics are where a key report asks for them", "cloudwatch"),
    # The key index
    "index-life": Check("built, kept by the stream's keeper, read by auto, removed: as before"),
    "index-old-records": Check(
        "of a stream that was on, records from before the keeper are worked"
    ),
    "index-stream-stays": Check("a stream that was on before stays on after the removal"),
    "index-capacity": Check(
        "a provisioned table's index is built, and has no more capacity than it"
    ),
    "index-scaling": Check(
        "an auto-scaled table's index gets auto scaling, and nothing is refused", "scaling"
    ),
    "stream-looks": Check("a strong read after a record's arrival shows its write, or a later one"),
    "stream-order": Check("a stream shard has its records in the order of the writes' answers"),
    "index-kms": Check("a table with a customer-managed key can have an index", "kms"),
    # Hot keys
    "sharding-hot-key": Check(
        "the service tells a hot key range, and shards are added", "throttles"
    ),
    "sharding-small-table": Check(
        "a table of 5 WCU is throttled for its capacity: it is raised, and no shard is added",
        "throttles",
    ),
    "sharding-functions": Check("WriteSharded and QuerySharded write and read all shards as one"),
    "sharding-drain": Check("DrainShards moves all items to fewer shards, and loses none"),
    # The deployment
    "update-refused": Check("an update lets go of no table while its key index stands"),
    "destroy-refused": Check("so does cdk destroy, and nothing is lost by that", "refusals"),
    "destroy": Check("cdk destroy takes all away but the bucket and the metadata tables"),
    "deploy-again": Check("a new deployment takes up the bucket and the metadata tables"),
}
