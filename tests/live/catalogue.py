"""The checks by name: claims.md names them, and a complete start of the suite makes them all.

A check may be made several times, on several tables. A check that needs something that a laptop
lacks (ways.py) is skipped there, with the reason.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Check:
    """A check: the claim that it `shows`, and a capability that it `needs` and a laptop lacks."""

    shows: str
    needs: str | None = None


CHECKS: dict[str, Check] = {
    # The service itself
    "hop": Check(
        "a Scan from {last key, greatest sort key} finds the next key, for 0.5 read units"
    ),
    "hop-from-large": Check("a hop leaves a collection larger than a page"),
    "foreign-segment": Check("a start key of another segment is refused"),
    "greatest-sort-key": Check("items at the greatest sort key are found, and come last"),
    "empty-segment": Check("a page of an empty segment is charged 0.5 read units"),
    "table-identity": Check("DescribeTable distinguishes tables of the same name"),
    "index-segments": Check("the segments of an index hold each item exactly once"),
    "table-members": Check("DescribeTable has no member that Keyhop does not know"),
    "vector-index": Check(
        "a table with a vector index takes items without a vector, such as sentinels", "vectors"
    ),
    "bulk-put-records": Check(
        "each item of a bulk put creates a record in the table's stream", "bulk puts"
    ),
    "vector-index-beside": Check(
        "a vector index is made beside 20 indexes, while the last of them is made or soon after",
        "vectors",
    ),
    # keyhop keys
    "command": Check("keyhop keys lists each key exactly once"),
    # EnumerateKeys
    "run": Check("an execution lists each key exactly once; output, manifest and parts agree"),
    "run-stop": Check("functions go on after their execution was stopped"),
    "run-resume": Check("resume continues a run whose execution was stopped"),
    "run-redrive": Check("a redrive continues a run that was stopped", "redrive"),
    "run-groups": Check("several groups work at once, and a check confirms the result"),
    "run-plan": Check("dryRun writes an estimate and nothing else"),
    "run-refusal": Check("an unknown field is refused by name"),
    "run-allow-list": Check("a table that is not allowed is refused"),
    "run-budget": Check("a spent budget fails; resume ends with the same keys"),
    "run-large-part": Check("a part above 8 MB is uploaded in pieces, and is complete"),
    "worker-speed": Check(
        "a worker sends 3,800 requests a second, or half of that at least", "speed"
    ),
    # Around the runs
    "athena": Check(
        "Athena reads the keys of a run, and none of a run that does not exist", "glue"
    ),
    "second-machine": Check(
        "another state machine maps over the parts of a run, and over their keys"
    ),
    "metrics-at-error": Check("with logLevel ERROR the functions' metrics arrive", "cloudwatch"),
    "alarm-at-error": Check("with logLevel ERROR a failed run raises its alarm", "cloudwatch"),
    "report-metrics": Check("a table's metrics are where a key report asks for them", "cloudwatch"),
    # The key index
    "index-life": Check("an index is built, maintained, read, and removed: the table is as before"),
    "index-old-records": Check(
        "if a stream was already on, the keeper gets records from before it", "cloudwatch"
    ),
    "index-stream-stays": Check("a stream that was on before the build stays on after the removal"),
    "index-capacity": Check(
        "a provisioned table's index is built, and has no more capacity than it"
    ),
    "index-scaling": Check(
        "an auto-scaled table's index gets auto scaling, and nothing is refused", "scaling"
    ),
    "stream-looks": Check(
        "a strong read after a record has arrived shows its write, or a later one"
    ),
    "stream-order": Check("a shard of a stream has its records in the order of the writes"),
    "index-kms": Check("a table with a customer-managed key can have an index", "kms"),
    # Actions, reports and re-keys
    "each-put-undo": Check("ForEachKey puts an item for each key once, and undo deletes them"),
    "report-run": Check("ReportKeys samples by SampleKeys, finds what is planted, keeps its page"),
    "rekey-there": Check("a re-key copies, follows and verifies a table, and the new one serves"),
    "rekey-back": Check(
        "a write to the new table reaches the old one; after a rollback that serves"
    ),
    # Hot keys
    "sharding-hot-key": Check(
        "a throttle names the hot key range, and then shards are added", "throttles"
    ),
    "sharding-small-table": Check(
        "a table of 5 WCU is throttled: its capacity is raised, and no shard is added",
        "throttles",
    ),
    "sharding-functions": Check("WriteSharded and QuerySharded write and read all shards as one"),
    "sharding-drain": Check("DrainShards moves all items to fewer shards, and loses none"),
    # The deployment
    "schedule": Check("a schedule lists the keys of a table", "schedules"),
    "vpc-run": Check("in a VPC without a route out, the listed endpoints are enough", "vpc"),
    "update-refused": Check("an update that drops a table with a key index is refused"),
    "destroy-refused": Check(
        "cdk destroy is refused while there is a key index, and loses nothing", "refusals"
    ),
    "destroy": Check("cdk destroy deletes all but the bucket and the metadata tables"),
    "deploy-again": Check("a new deployment reuses the bucket and the metadata tables"),
}
