"""A4, A5, A10, A12, A14, A17: tables by the requests and the code of their applications."""

from random import Random

from testing.report_corpus.case import Index, Metric, Schema, case
from testing.report_corpus.tables.clean import HIGH_SHARE, ONE_ENTITY, shop
from testing.report_corpus.words import iso, name, uuid

GETS = (
    Metric("ConsumedReadCapacityUnits", 3_000),
    Metric("ConsumedWriteCapacityUnits", 1_000),
    Metric("SuccessfulRequestLatency", 1_000, operation="PutItem"),
)


def sample(client, table, count: int = 80):
    return client.scan(TableName=table, Limit=count)["Items"]


# A5: filters


def filtering(keep: float):
    """Return an application that queries items with a filter that keeps a share of them."""

    def work(client, table, chance: Random):
        keys = sample(client, table)
        for _ in range(420):
            client.query(
                TableName=table,
                KeyConditionExpression="pk = :k",
                FilterExpression="#b < :b",
                ExpressionAttributeNames={"#b": "bucket"},
                ExpressionAttributeValues={
                    ":k": chance.choice(keys)["pk"],
                    ":b": {"N": str(int(keep * 100))},
                },
            )

    return work


def bucketed(chance: Random, now: float):
    for _ in range(20):
        pk = f"USER#{uuid(chance)}"
        for number in range(100):
            yield {"pk": pk, "sk": f"NOTE#{number:03}", "Type": "Note", "bucket": number}


for called, keep in (
    ("a filter that keeps a tenth", 0.1),
    ("a filter that keeps four fifths", 0.8),
):
    case(
        called,
        "planted",
        Schema(sort="sk"),
        items=bucketed,
        application=filtering(keep),
        found=["A5"],
        allowed=ONE_ENTITY,
    )
case(
    "a filter that keeps 97 in 100",
    "decoy",
    Schema(sort="sk"),
    items=bucketed,
    application=filtering(0.97),
    allowed=ONE_ENTITY,
    traps={"A5": "3 % are dropped"},
)


def filtered_scans(client, table, chance: Random):
    for _ in range(400):
        client.scan(
            TableName=table,
            FilterExpression="#t = :t",
            ExpressionAttributeNames={"#t": "Type"},
            ExpressionAttributeValues={":t": {"S": "Customer"}},
            Limit=50,
        )


case(
    "scans with a filter, watched",
    "planted",
    Schema(sort="sk"),
    items=shop,
    application=filtered_scans,
    found=["A5"],
    allowed={"A4": "these are scans; calls that CloudWatch counts are A4's source"},
)


def paging(client, table, chance: Random):
    keys = sample(client, table)
    for _ in range(420):
        start = {}
        key = chance.choice(keys)["pk"]
        for _ in range(2):
            page = client.query(
                TableName=table,
                KeyConditionExpression="pk = :k",
                ExpressionAttributeValues={":k": key},
                Limit=3,
                **start,
            )
            if "LastEvaluatedKey" not in page:
                break
            start = {"ExclusiveStartKey": page["LastEvaluatedKey"]}


case(
    "short pages without a filter",
    "decoy",
    Schema(sort="sk"),
    items=bucketed,
    application=paging,
    allowed=ONE_ENTITY,
    traps={"A5": "pages are short, nothing is dropped"},
)

# A10: new items that are read from an index

BY_OWNER = Schema("pk", indexes=(Index("byOwner", "owner"),))


def owned(chance: Random, now: float):
    for _ in range(500):
        yield {"pk": f"CAR#{uuid(chance)}", "owner": f"o{chance.randrange(150)}", "n": name(chance)}


def by_owner(client, table, owner: str) -> None:
    client.query(
        TableName=table,
        IndexName="byOwner",
        KeyConditionExpression="#o = :o",
        ExpressionAttributeNames={"#o": "owner"},
        ExpressionAttributeValues={":o": {"S": owner}},
    )


def read_after_write(same: bool):
    def work(client, table, chance: Random):
        client.get_item(TableName=table, Key={"pk": {"S": "CAR#any"}})
        for number in range(900):  # longer than the second that the sampler needs to know
            owner = f"o{chance.randrange(150)}"
            put = owner if same else f"w{number}"
            client.put_item(
                TableName=table,
                Item={"pk": {"S": f"CAR#{uuid(chance)}"}, "owner": {"S": put}, "n": {"S": "x"}},
            )
            by_owner(client, table, owner)

    return work


case(
    "written, and read by its index at once",
    "planted",
    BY_OWNER,
    items=owned,
    application=read_after_write(True),
    found=["A10 byOwner"],
    allowed=ONE_ENTITY | HIGH_SHARE,
)
case(
    "written, and others read by the index",
    "decoy",
    BY_OWNER,
    items=owned,
    application=read_after_write(False),
    allowed=ONE_ENTITY | HIGH_SHARE,
    traps={"A10 byOwner": "other owners are read than were written"},
)


def renamed(client, table, chance: Random):
    """Give an owner to cars, and query the index by owner immediately; also query other owners."""
    keys = sample(client, table)
    for number in range(1_000):
        owner = f"o{chance.randrange(150)}"
        if number % 3:
            client.update_item(
                TableName=table,
                Key={"pk": chance.choice(keys)["pk"]},
                UpdateExpression="SET #o = :o",
                ExpressionAttributeNames={"#o": "owner"},
                ExpressionAttributeValues={":o": {"S": owner}},
            )
        by_owner(client, table, owner)


case(
    "updated, and read by its index two times in three",
    "planted",
    BY_OWNER,
    items=owned,
    application=renamed,
    found=["A10 byOwner"],
    allowed=ONE_ENTITY | HIGH_SHARE,
)

# A12: transactions of one item


def transactions(each: int):
    def work(client, table, chance: Random):
        for _ in range(400):
            cars = [f"CAR#{uuid(chance)}{part}" for part in range(each)]
            items = [{"pk": {"S": car}, "owner": {"S": "o1"}} for car in cars]
            client.transact_write_items(
                TransactItems=[{"Put": {"TableName": table, "Item": item}} for item in items]
            )

    return work


case(
    "transactions of one item",
    "planted",
    Schema("pk"),
    items=owned,
    application=transactions(1),
    found=["A12"],
    allowed=ONE_ENTITY,
)
case(
    "transactions of two items, beside other writes",
    "decoy",
    Schema("pk"),
    items=owned,
    application=transactions(2),
    metrics=(*GETS, Metric("SuccessfulRequestLatency", 300, operation="TransactWriteItems")),
    allowed=ONE_ENTITY,
    traps={"A12": "two items each, and a quarter of the writes"},
)

# A17: consistent reads


def gets(consistent: float):
    def work(client, table, chance: Random):
        keys = sample(client, table)
        for _ in range(420):
            item = chance.choice(keys)
            client.get_item(
                TableName=table,
                Key={name: item[name] for name in ("pk", "sk") if name in item},
                ConsistentRead=chance.random() < consistent,
            )

    return work


case(
    "every read consistent",
    "planted",
    Schema(sort="sk"),
    items=shop,
    application=gets(1.0),
    found=["A17"],
)
case(
    "nine reads in ten consistent",
    "planted",
    Schema("pk"),
    items=owned,
    application=gets(0.9),
    found=["A17"],
    allowed=ONE_ENTITY,
)
case(
    "a read unit for each GetItem of small items",
    "planted",
    Schema("pk"),
    items=owned,
    metrics=(
        Metric("ConsumedReadCapacityUnits", 3_000),
        Metric("ConsumedWriteCapacityUnits", 300),
        Metric("SuccessfulRequestLatency", 3_000, operation="GetItem"),
    ),
    found=["A17"],
    allowed=ONE_ENTITY,
)
case(
    "half a read unit for each GetItem",
    "decoy",
    Schema("pk"),
    items=owned,
    metrics=(
        Metric("ConsumedReadCapacityUnits", 1_500),
        Metric("ConsumedWriteCapacityUnits", 300),
        Metric("SuccessfulRequestLatency", 3_000, operation="GetItem"),
    ),
    allowed=ONE_ENTITY,
    traps={"A17": "half a unit: not consistent"},
)
case(
    "one read in twenty consistent",
    "decoy",
    Schema("pk"),
    items=owned,
    application=gets(0.05),
    allowed=ONE_ENTITY,
    traps={"A17": "5 %"},
)

# A14, A4, A5, A11 by code alone

FORGETS = """
import boto3

client = boto3.client("dynamodb")


def save(rows):
    for start in range(0, len(rows), 25):
        batch = [{"PutRequest": {"Item": row}} for row in rows[start : start + 25]]
        client.batch_write_item(RequestItems={"TABLE": batch})
"""
FORGETS_BY_RESOURCE = """
import boto3


class Store:
    def __init__(self):
        self.dynamodb = boto3.resource("dynamodb")

    def save(self, rows):
        answer = self.dynamodb.batch_write_item(
            RequestItems={"TABLE": [{"PutRequest": {"Item": row}} for row in rows]}
        )
        return answer["ResponseMetadata"]["HTTPStatusCode"] == 200
"""
REMEMBERS = """
import boto3

client = boto3.client("dynamodb")


def save(rows):
    waiting = {"TABLE": [{"PutRequest": {"Item": row}} for row in rows]}
    while waiting:
        waiting = client.batch_write_item(RequestItems=waiting).get("UnprocessedItems")


def save_all(table, rows):
    with table.batch_writer() as batch:
        for row in rows:
            batch.put_item(row)
"""
SENDS = """
import boto3

client = boto3.client("dynamodb")


def send(requests):
    return client.batch_write_item(RequestItems=requests)


def save(rows):
    answer = send({"TABLE": [{"PutRequest": {"Item": row}} for row in rows]})
    if answer["UnprocessedItems"]:
        raise RuntimeError("later")
"""
STATUS = """
import boto3

orders = boto3.resource("dynamodb").Table("TABLE")


def pay(order):
    orders.update_item(
        Key={"pk": order},
        UpdateExpression="SET #s = :s",
        ExpressionAttributeNames={"#s": "status"},
        ExpressionAttributeValues={":s": "paid"},
    )
"""
STATUS_SAFE = STATUS.replace('":s": "paid"}', '":s": "paid", ":o": "new"}').replace(
    "UpdateExpression", 'ConditionExpression="#s = :o",\n        UpdateExpression'
)
NO_DYNAMODB = '''
class Scanner:
    """A scanner of paper; and a filter for coffee."""

    def scan(self, page, FilterExpression=None):
        return page


def all_pages(scanner, pages):
    return [scanner.scan(page) for page in pages]


def query(text):
    return [line for line in text.split() if line]
'''


def new_orders(chance: Random, now: float):
    for n in range(500):
        yield {"pk": f"ORDER#{uuid(chance)}", "status": "new", "at": iso(now - n)}


for called, files in (
    ("batches whose rest is forgotten", {"save.py": FORGETS}),
    ("batches by the resource, whose rest is forgotten", {"app/store.py": FORGETS_BY_RESOURCE}),
):
    case(called, "planted", Schema(sort="sk"), items=shop, code=files, found=["A14"])
case(
    "batches whose rest is sent again",
    "decoy",
    Schema(sort="sk"),
    items=shop,
    code={"save.py": REMEMBERS},
    traps={"A14": "UnprocessedItems are read, and batch_writer sends again by itself"},
)
case(
    "batches by a wrapper",
    "decoy",
    Schema(sort="sk"),
    items=shop,
    code={"save.py": SENDS},
    allowed={"A14": "a wrapper returns the answer; who calls it may read it"},
)
case(
    "a status set without a condition",
    "planted",
    Schema("pk"),
    items=new_orders,
    code={"orders.py": STATUS},
    found=["A11"],
    allowed=ONE_ENTITY,
)
case(
    "a status set under a condition",
    "decoy",
    Schema("pk"),
    items=new_orders,
    code={"orders.py": STATUS_SAFE},
    allowed=ONE_ENTITY,
    traps={"A11": "conditioned"},
)
case(
    "code about paper scanners",
    "decoy",
    Schema(sort="sk"),
    items=shop,
    code={"scanner.py": NO_DYNAMODB, "broken.py": "def ("},
    traps={"A4": "another scan", "A5": "another filter", "A14": "no batch at all"},
)
