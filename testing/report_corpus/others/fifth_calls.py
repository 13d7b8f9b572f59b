"""Tables of the fifth part whose callers make mistakes, or only seem to make some."""

from random import Random
from time import sleep
from typing import Any

from testing.report_corpus.case import Index, Item, Metric, Schema
from testing.report_corpus.others.fifth_rows import (
    Application,
    Rows,
    declare,
    gets,
    keyed,
    known,
    known_key,
    queries,
    requests,
    rows_of,
    series,
    single,
    units,
    weighted,
)

PK, BOTH = Schema("pk"), Schema("pk", "sk")
LABELED: Item = {
    "label": {"S": "written by the application"},
    "at": {"S": "2026-11-20T10:00:00.000Z"},
}
"""The attributes of `plain`, as the applications write them."""


def plain(tag: str, spec: str = "label at:time") -> Rows:
    return single(known_key(tag), spec, 400)


# A4: Scan in production

for title, tag, busy, per_minute in rows_of("""
    a dashboard that scans all orders each minute | ORDER | (0, 1440) | \
        {"Scan": 4, "PutItem": 60}
    an API that lists users by Scan | USER | (0, 1440) | {"Scan": 90, "GetItem": 300}
    a poller that scans for due jobs | JOB | (0, 1440) | {"Scan": 12, "UpdateItem": 30}
    a back office that scans from eight to six | CLAIM | (480, 1080) | \
        {"Scan": 25, "GetItem": 80}
    a search box that scans products | PRODUCT | (0, 1440) | {"Scan": 200, "Query": 20}
    a cache that is filled by Scan all day | RATE | (0, 1440) | {"Scan": 2, "GetItem": 5}
    a game that scans for open rooms | ROOM | (600, 1430) | {"Scan": 40, "UpdateItem": 400}
    a report for shops that scans in office hours | SALE | (420, 1140) | \
        {"Scan": 6, "PutItem": 700}
"""):
    declare(
        title,
        PK,
        plain(tag),
        "A4",
        "A2: all items are of one kind; A1: the ids are random; H4: nothing is throttled",
        metrics=(*units(9_000, 1_200), *requests(busy, **per_minute)),
    )
for title, tag, metrics, why in (
    (
        "a backup that scans for half an hour at night",
        "NOTE",
        requests((120, 150), Scan=60),
        "half an hour of each day",
    ),
    (
        "a count that scans for forty minutes at noon",
        "VISIT",
        requests((720, 760), Scan=9),
        "forty minutes of each day",
    ),
    (
        "an analysis that scans each Sunday",
        "LEAD",
        (Metric("SuccessfulRequestLatency", 80, operation="Scan", busy=(60, 180), every_days=7),),
        "two hours a week",
    ),
    ("an API without scans", "CART", requests(GetItem=500, PutItem=100), "there are no scans"),
    ("queries all day", "TASK", requests(Query=900, UpdateItem=90), "a Query is no Scan"),
    (
        "batches all day",
        "PHOTO",
        requests(BatchGetItem=300, BatchWriteItem=40),
        "there are no scans",
    ),
):
    declare(
        title,
        PK,
        plain(tag),
        "",
        f"A4: {why}; A5: no filter is seen; A12: no transaction is seen; H1: nothing is throttled",
        metrics=(*units(9_000, 1_200), *metrics),
    )
declare(
    "keys that only a test scans",
    PK,
    plain("KEY"),
    "",
    "A4: the metrics show no Scan, and the only code that scans is a test",
    metrics=(*units(900, 200), *requests(GetItem=500, PutItem=100)),
    code={
        "tests/test_rows.py": """import boto3


def test_rows():
    table = boto3.resource("dynamodb", endpoint_url="http://localhost:8000").Table("TABLE")
    assert table.scan()["Count"] == 0
"""
    },
)


# A5: a filter drops most of the items


def states(tag: str, attribute: str, usual: str, share: float, rare: str, spec: str) -> Rows:
    """Return collections of about twenty items, whose attribute mostly has the usual value."""
    return series(
        known_key(tag),
        keyed("{}", "ulid"),
        spec,
        120,
        (16, 24),
        **{attribute: weighted(usual, share, rare)},
    )


for title, tag, attribute, usual, share, rare, asked, spec in rows_of("""
    open tasks of a project, of which most are done | PROJECT | state | done | 0.985 | open | \
        open | title
    unread mails of a mailbox | BOX | isRead | yes | 0.985 | no | no | subject
    failed payments of a shop | SHOP | outcome | paid | 0.985 | failed | failed | amount:cents
    alarms of a machine among its readings | MACHINE | level | fine | 0.985 | alarm | alarm | \
        celsius:float
    deleted pages of a site | SITE | removed | no | 0.985 | yes | yes | path
    admins of a tenant | TENANT | role | user | 0.985 | admin | admin | who:name
    winning tickets of a draw | DRAW | prize | none | 0.99 | car | car | owner:name
    late trains of a line | LINE | delay | none | 0.985 | late | late | train:hex
"""):
    declare(
        title,
        BOTH,
        states(tag, attribute, usual, share, rare, spec),
        "A5",
        "A4: the application queries; A17: it reads with eventual consistency; A15: evenly",
        application=queries(tag, "#a = :v", {":v": {"S": asked}}, {"#a": attribute}),
    )
for title, tag, attribute, usual, share, rare, more, spec, why in rows_of("""
    tasks without those that are hidden | PROJECT | state | shown | 0.96 | hidden | \
        {"condition": "#a = :v", "values": {":v": {"S": "shown"}}, "names": {"#a": "state"}} | \
        title | the filter keeps nearly all
    mails that are no spam | BOX | folder | inbox | 0.93 | spam | \
        {"condition": "#a <> :v", "values": {":v": {"S": "spam"}}, "names": {"#a": "folder"}} | \
        subject | the filter keeps nearly all
    payments of a shop without a filter | SHOP | outcome | paid | 0.98 | failed | {} | \
        amount:cents | no filter
    readings of a machine by their prefix | MACHINE | level | fine | 0.98 | alarm | \
        {"begins": "01M"} | celsius:float | the condition is of the sort key
    pages of a site with a title | SITE | removed | no | 0.97 | yes | \
        {"condition": "attribute_exists(title)"} | title | all items have a title
    the newest five of a tenant | TENANT | role | user | 0.97 | admin | {"Limit": 5} | who:name | \
        a limit is no filter
    prices of a draw, projected | DRAW | prize | none | 0.9 | car | \
        {"ProjectionExpression": "prize"} | owner:name | \
        a projection drops attributes and not items
    tokens that did not expire yet | LINE | kind2 | a | 0.9 | b | \
        {"condition": "expires > :now", "values": {":now": {"N": "1700000000"}}} | \
        expires:epoch | it drops none
"""):
    declare(
        title,
        BOTH,
        states(tag, attribute, usual, share, rare, spec),
        "",
        f"A5: {why}; A4: the application queries; A17: eventual consistency; "
        "A10: no index is read; A12: it does not write",
        application=queries(tag, **more),
    )


# A10: read after write by an index


def follows(tag: str, attribute: str, way: str, then: str) -> Application:
    """Return an application that writes 900 items, and reads after each write.

    Args:
        tag: The tag of the items' keys.
        attribute: The key of the index by-ATTRIBUTE, of which each write makes a new value.
        way: "put" or "update".
        then: The kind of read: "index", "mostly" for two of three, "item", "others", "before" for
            the index before the write, or "later" for the index after some seconds.
    """

    def listed(client: Any, table: str, value: str) -> None:
        client.query(
            TableName=table,
            IndexName=f"by-{attribute}",
            KeyConditionExpression="#a = :a",
            ExpressionAttributeNames={"#a": attribute},
            ExpressionAttributeValues={":a": {"S": value}},
        )

    def work(client: Any, table: str, chance: Random) -> None:
        values = []
        for number in range(900):
            key, value = {"pk": {"S": known(tag, number % 300)}}, known("new", number)
            if then == "before":
                listed(client, table, value)
            if way == "put":
                client.put_item(TableName=table, Item=key | LABELED | {attribute: {"S": value}})
            else:
                client.update_item(
                    TableName=table,
                    Key=key,
                    UpdateExpression="SET #a = :a",
                    ExpressionAttributeNames={"#a": attribute},
                    ExpressionAttributeValues={":a": {"S": value}},
                )
            values.append(value)
            if then == "index" or (then == "mostly" and number % 3):
                listed(client, table, value)
            elif then == "item":
                client.get_item(TableName=table, Key=key)
            elif then == "others":
                listed(client, table, known("fixed", chance.randrange(50)))
        if then == "later":
            sleep(2.5)
            for value in values[-300:]:
                listed(client, table, value)

    return work


def with_fixed(tag: str, attribute: str) -> Rows:
    """Return items of which the application changes the first 300, and reads the others."""
    return single(
        known_key(tag),
        "label at:time",
        500,
        **{attribute: lambda n, c, a: known("fixed", n % 50) if n >= 300 else known("old", n)},
    )


for title, tag, attribute, way, then, why in rows_of("""
    a user who is looked up by mail right after sign-up | USER | mail | put | index |
    an order that is listed by its number at once | ORDER | number | put | index |
    a task that is shown under its new owner at once | TASK | owner | update | index |
    a parcel that is searched by its new van | PARCEL | van | update | index |
    a booking that is confirmed through an index | BOOKING | code | put | mostly |
    a room whose new name is resolved at once | ROOM | alias | update | mostly |
    an upload whose checksum is looked up at once | UPLOAD | checksum | put | index |
    a device that is found by its new address at once | DEVICE | address | update | index |
    a user who is read by the key after sign-up | USER | mail | put | item | \
        the table is read and not the index
    an order that is read by the key | ORDER | number | update | item | \
        the table is read and not the index
    a task list that is read while other tasks change | TASK | owner | update | others | \
        others' items are read
    parcels of other vans while parcels move | PARCEL | van | update | others | \
        others' items are read
    a booking whose code is checked before | BOOKING | code | put | before | \
        it is not written yet
    a room whose alias is checked before | ROOM | alias | update | before | it is not written yet
    uploads that are listed when all are done | UPLOAD | checksum | put | later | \
        some seconds lie between
"""):
    declare(
        title,
        Schema("pk", indexes=(Index(f"by-{attribute}", attribute),)),
        with_fixed(tag, attribute),
        "" if why else f"A10 by-{attribute}",
        ({f"A10 by-{attribute}": why} if why else {})
        | {
            "A12": "there is no transaction",
            f"A9 by-{attribute}": "no value is frequent",
            "A4": "it does not scan",
            "A17": "it reads with eventual consistency",
        },
        application=follows(tag, attribute, way, then),
    )


# A12: transactions for all


def transacts(tag: str, share: float, size: int, otherwise: str = "put") -> Application:
    """Return an application of which a share of the writes are transactions of so many items."""

    def work(client: Any, table: str, chance: Random) -> None:
        for _ in range(600):
            items: list[Item] = [
                LABELED | {"pk": {"S": known(tag, which)}}
                for which in chance.sample(range(300), size)
            ]
            puts = [{"PutRequest": {"Item": item}} for item in items]
            if chance.random() < share:
                client.transact_write_items(
                    TransactItems=[{"Put": {"TableName": table, "Item": item}} for item in items]
                )
            elif otherwise == "batch":
                client.batch_write_item(RequestItems={table: puts})
            else:
                client.put_item(TableName=table, Item=items[0])

    return work


for title, tag, share, size in (
    ("notes, each saved in a transaction of one", "NOTE", 1.0, 1),
    ("seats, each write a transaction of two", "SEAT", 1.0, 2),
    ("log lines in transactions of four", "LOG", 0.95, 4),
    ("profiles, nearly all saved in transactions", "PROFILE", 0.9, 1),
    ("telemetry in transactions of five", "TELEMETRY", 1.0, 5),
    ("comments in transactions of one", "COMMENT", 0.85, 1),
    ("settings in transactions of three", "SETTING", 0.97, 3),
    ("likes in transactions of two", "LIKE", 0.92, 2),
):
    declare(
        title,
        PK,
        plain(tag),
        "A12",
        "A17: it does not read; A4: it does not scan",
        application=transacts(tag, share, size),
    )
for title, tag, share, size, otherwise, why in rows_of("""
    carts, of which one in fifty is ordered in a transaction | CART | 0.02 | 3 | put | \
        one write in fifty
    wallets with a rare transfer | WALLET | 0.03 | 2 | put | one write in thirty
    readings in batches | READING | 0.0 | 10 | batch | a batch is no transaction
    notes that are simply put | NOTE | 0.0 | 1 | put | there is no transaction
"""):
    declare(
        title,
        PK,
        plain(tag),
        "",
        f"A12: {why}; A17: it does not read; A10: no index",
        application=transacts(tag, share, size, otherwise),
    )


# A17: consistent reads everywhere

for title, tag, share, way in (
    ("sessions, each read consistently", "SESSION", 1.0, "get"),
    ("product pages, read consistently", "PRODUCT", 1.0, "get"),
    ("flags, nearly all read consistently", "FLAG", 0.95, "get"),
    ("messages of a chat, queried consistently", "CHAT", 1.0, "query"),
    ("orders of a customer, queried consistently", "CUSTOMER", 0.97, "query"),
    ("articles, read consistently by a framework's default", "ARTICLE", 1.0, "get"),
    ("timelines, queried consistently", "TIMELINE", 1.0, "query"),
    ("profiles, read consistently in nine cases of ten", "PROFILE", 0.92, "get"),
):
    declare(
        title,
        PK if way == "get" else BOTH,
        plain(tag)
        if way == "get"
        else series(known_key(tag), keyed("{}", "ulid"), "label", 120, (3, 6)),
        "A17",
        "A5: there is no filter; A4: it does not scan; A12: it does not write",
        application=gets(tag, share) if way == "get" else queries(tag, consistent=share),
    )
for title, tag, share in (
    ("sessions, read with eventual consistency", "SESSION", 0.0),
    ("accounts, of which one read in fifty is consistent", "ACCOUNT", 0.02),
    ("products, read eventually", "PRODUCT", 0.0),
    ("locks that are checked consistently now and then", "LOCK", 0.04),
):
    declare(
        title,
        PK,
        plain(tag),
        "",
        "A17: hardly any read is consistent; A5: there is no filter; A4: it does not scan",
        application=gets(tag, share),
    )


# A11: status changes without a condition. A14: leftovers of a batch are ignored

RESOURCE = """import boto3

dynamodb = boto3.resource("dynamodb")
table = dynamodb.Table("TABLE")


"""
CLIENT = """import boto3

client = boto3.client("dynamodb")


"""


def programs(text: str) -> list[tuple[str, str, str]]:
    """Return the title, the code and the reason of each program.

    The first line of a program is "## title | beginning | reason", of which the beginning is
    "resource", "client" or nothing.
    """
    beginnings = {"resource": RESOURCE, "client": CLIENT, "": ""}
    rows = []
    for program in text.strip().removeprefix("## ").split("\n## "):
        head, _, code = program.partition("\n")
        ((title, beginning, why),) = rows_of(head)
        rows.append((f"code: {title}", beginnings[beginning] + code.rstrip() + "\n", why))
    return rows


for title, code, why in programs("""
## an order is paid | resource |
def pay(order_id):
    table.update_item(
        Key={"pk": order_id},
        UpdateExpression="SET #s = :s",
        ExpressionAttributeNames={"#s": "status"},
        ExpressionAttributeValues={":s": "PAID"},
    )
## a job is started by any worker | resource |
def start(job, worker):
    table.update_item(
        Key={"pk": job["pk"]},
        UpdateExpression="SET #status = :running, worker = :worker",
        ExpressionAttributeNames={"#status": "status"},
        ExpressionAttributeValues={":running": "RUNNING", ":worker": worker},
    )
## a ticket is closed through the client | client |
def close(ticket):
    client.update_item(
        TableName="TABLE",
        Key={"pk": {"S": ticket}},
        UpdateExpression="SET #status = :closed",
        ExpressionAttributeNames={"#status": "status"},
        ExpressionAttributeValues={":closed": {"S": "closed"}},
    )
## a shipment moves on by what was read | resource |
NEXT = {"new": "packed", "packed": "sent"}


def advance(key):
    item = table.get_item(Key=key)["Item"]
    table.update_item(
        Key=key,
        UpdateExpression="SET #s = :next",
        ExpressionAttributeNames={"#s": "status"},
        ExpressionAttributeValues={":next": NEXT[item["status"]]},
    )
## a loan is approved, with time | resource |
import time


class Loans:
    def approve(self, loan):
        return table.update_item(
            Key={"pk": loan},
            UpdateExpression="SET #st = :st, approvedAt = :at",
            ExpressionAttributeNames={"#st": "status"},
            ExpressionAttributeValues={":st": "approved", ":at": int(time.time())},
            ReturnValues="ALL_NEW",
        )["Attributes"]
## subscriptions are cancelled by a webhook | resource |
def handler(event, context):
    for record in event["Records"]:
        table.update_item(
            Key={"pk": record["subscription"]},
            UpdateExpression="SET #status = :status REMOVE renewsAt",
            ExpressionAttributeNames={"#status": "status"},
            ExpressionAttributeValues={":status": "cancelled"},
        )
## rides are accepted, last driver wins | resource |
def accept(ride, driver):
    table.update_item(
        Key={"pk": f"RIDE#{ride}"},
        UpdateExpression="SET #status = :status, driver = :driver",
        ExpressionAttributeNames={"#status": "status"},
        ExpressionAttributeValues={":status": "accepted", ":driver": driver},
    )
## an invoice is refunded | client |
def refund(invoice, reason):
    client.update_item(
        TableName="TABLE",
        Key={"pk": {"S": invoice}},
        UpdateExpression="SET #s = :refunded, reason = :reason",
        ExpressionAttributeNames={"#s": "status"},
        ExpressionAttributeValues={":refunded": {"S": "refunded"}, ":reason": {"S": reason}},
    )
## an order is paid if it is new | resource | a condition names the state before
def pay(order_id):
    table.update_item(
        Key={"pk": order_id},
        UpdateExpression="SET #s = :paid",
        ConditionExpression="#s = :new",
        ExpressionAttributeNames={"#s": "status"},
        ExpressionAttributeValues={":paid": "PAID", ":new": "NEW"},
    )
## a job is started with a condition of boto3 | resource | a condition names the state before
from boto3.dynamodb.conditions import Attr


def start(job):
    table.update_item(
        Key={"pk": job},
        UpdateExpression="SET #s = :s",
        ConditionExpression=Attr("status").eq("queued"),
        ExpressionAttributeNames={"#s": "status"},
        ExpressionAttributeValues={":s": "running"},
    )
## a ticket gets its first status | resource | if_not_exists keeps a status that is there
def first(ticket):
    table.update_item(
        Key={"pk": ticket},
        UpdateExpression="SET #s = if_not_exists(#s, :open)",
        ExpressionAttributeNames={"#s": "status"},
        ExpressionAttributeValues={":open": "open"},
    )
## a title changes | resource | a title is no status
def rename(page, title):
    table.update_item(
        Key={"pk": page},
        UpdateExpression="SET title = :title, editedAt = :at",
        ExpressionAttributeValues={":title": title, ":at": 0},
    )
## an order is created with its status | resource | a new item has a condition, too
def create(order):
    table.put_item(
        Item={"pk": order, "status": "NEW"},
        ConditionExpression="attribute_not_exists(pk)",
    )
## a status is read and never written | resource | it is read
def status(order):
    return table.get_item(Key={"pk": order}, ProjectionExpression="#s",
                          ExpressionAttributeNames={"#s": "status"})["Item"]["status"]
## a lease is taken with a version | client | a condition on the version
def take(lease, version):
    client.update_item(
        TableName="TABLE",
        Key={"pk": {"S": lease}},
        UpdateExpression="SET #s = :taken, version = :next",
        ConditionExpression="version = :version",
        ExpressionAttributeNames={"#s": "status"},
        ExpressionAttributeValues={
            ":taken": {"S": "taken"},
            ":version": {"N": str(version)},
            ":next": {"N": str(version + 1)},
        },
    )
## views are counted | resource | a counter is no status
def view(page):
    table.update_item(
        Key={"pk": page},
        UpdateExpression="ADD #v :one",
        ExpressionAttributeNames={"#v": "views"},
        ExpressionAttributeValues={":one": 1},
    )
"""):
    declare(
        title,
        PK,
        plain("ROW", "label state2:a|b at:time"),
        "" if why else "A11",
        ({"A11": why} if why else {})
        | {"A14": "there is no batch", "A4": "the code does not scan", "A12": "no transaction"},
        code={"app.py": code},
    )
for title, code, why in programs("""
## rows are loaded in batches | client |
def load(rows):
    puts = [{"PutRequest": {"Item": row}} for row in rows]
    for first in range(0, len(puts), 25):
        client.batch_write_item(RequestItems={"TABLE": puts[first : first + 25]})
## users are read in a batch | client |
def users(keys):
    response = client.batch_get_item(RequestItems={"TABLE": {"Keys": keys}})
    return response["Responses"]["TABLE"]
## rows are deleted in batches | client |
def purge(keys):
    client.batch_write_item(
        RequestItems={"TABLE": [{"DeleteRequest": {"Key": key}} for key in keys[:25]]}
    )
    return len(keys)
## the resource writes a batch |  |
import boto3

dynamodb = boto3.resource("dynamodb")


def save(items):
    dynamodb.batch_write_item(
        RequestItems={"TABLE": [{"PutRequest": {"Item": item}} for item in items]}
    )
## a dashboard reads a batch of keys |  |
import boto3

dynamodb = boto3.resource("dynamodb")


def tiles(keys):
    found = dynamodb.batch_get_item(RequestItems={"TABLE": {"Keys": keys}})["Responses"]
    return {item["pk"]: item for item in found["TABLE"]}
## a handler writes a batch from SQS | client |
import json


def handler(event, context):
    puts = [{"PutRequest": {"Item": json.loads(one["body"])}} for one in event["Records"]]
    client.batch_write_item(RequestItems={"TABLE": puts})
    return {"batchItemFailures": []}
## a batch whose status code alone is checked | client |
def save(puts):
    response = client.batch_write_item(RequestItems={"TABLE": puts})
    if response["ResponseMetadata"]["HTTPStatusCode"] != 200:
        raise RuntimeError("the batch failed")
## members are read in batches of a hundred | client |
def members(keys):
    rows = []
    while keys:
        part, keys = keys[:100], keys[100:]
        page = client.batch_get_item(RequestItems={"TABLE": {"Keys": part}})
        rows += page["Responses"].get("TABLE", [])
    return rows
## a batch until nothing is left | client | it sends what is left again
def load(puts):
    asked = {"TABLE": puts}
    while asked:
        asked = client.batch_write_item(RequestItems=asked).get("UnprocessedItems", {})
## batch_writer of boto3 | resource | batch_writer sends what is left again
def load(rows):
    with table.batch_writer() as batch:
        for row in rows:
            batch.put_item(Item=row)
## keys are read until none is left | client | it reads what is left again
def read(keys):
    asked, rows = {"TABLE": {"Keys": keys}}, []
    while asked:
        page = client.batch_get_item(RequestItems=asked)
        rows += page["Responses"].get("TABLE", [])
        asked = page["UnprocessedKeys"]
    return rows
## what is left is an error | client | the caller is told
def save(puts):
    response = client.batch_write_item(RequestItems={"TABLE": puts})
    if response.get("UnprocessedItems"):
        raise RuntimeError("some items were not written")
## what is left goes to a queue | client | a queue takes what is left
sqs = boto3.client("sqs")


def save(puts, queue):
    left = client.batch_write_item(RequestItems={"TABLE": puts})["UnprocessedItems"]
    for one in left.get("TABLE", []):
        sqs.send_message(QueueUrl=queue, MessageBody=str(one))
## messages are deleted in a batch of SQS | client | it is a batch of SQS
sqs = boto3.client("sqs")


def done(queue, entries):
    sqs.delete_message_batch(QueueUrl=queue, Entries=entries)


def save(item):
    client.put_item(TableName="TABLE", Item=item)
## a transaction of several items | client | a transaction leaves nothing undone
def save(items):
    client.transact_write_items(
        TransactItems=[{"Put": {"TableName": "TABLE", "Item": item}} for item in items]
    )
## rows are written one by one | resource | there is no batch
def load(rows):
    for row in rows:
        table.put_item(Item=row)
"""):
    declare(
        title,
        PK,
        plain("ROW", "label at:time"),
        "" if why else "A14",
        ({"A14": why} if why else {})
        | {
            "A11": "no status changes",
            "A4": "the code does not scan",
            "A2": "all items are of one kind",
        },
        code={"app.py": code},
    )
