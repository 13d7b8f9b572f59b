"""More tables with schemas that others have published: checkpoints, sessions and metadata."""

from collections.abc import Callable, Iterator
from functools import cache
from random import Random

from testing.report_corpus import words
from testing.report_corpus.case import DAY, Index, Item, Metric, Schema, Write
from testing.report_corpus.others.public import Items, published, when


@cache
def hexes(seed: str, count: int, length: int = 12) -> list[str]:
    """Return constant random ids, to which several items may refer."""
    chance = Random(seed)
    return [f"{chance.getrandbits(length * 4):0{length}x}" for _ in range(count)]


@cache
def uuids(seed: str, count: int) -> list[str]:
    chance = Random(seed)
    return [words.uuid(chance) for _ in range(count)]


def skewed(chance: Random, pool, power: float = 2.0):
    """Return an element of the pool; the first ones are more common."""
    return pool[int(len(pool) * chance.random() ** power)]


def mostly(chance: Random, first: str, share: float, *rest: str) -> str:
    return first if chance.random() < share else chance.choice(rest)


def updates(count: int, seconds: float, change: Callable[[Item], Item]):
    """Return a stream of updates of random items, each of which continues from the last state."""

    def stream(chance: Random, now: float, items: list[Item]) -> Iterator[Write]:
        state = list(items)
        for ago in sorted((chance.random() * seconds for _ in range(count)), reverse=True):
            place = chance.randrange(len(state))
            old = state[place]
            state[place] = {**old, **change(old)}
            yield Write(ago, old, state[place])

    return stream


def gsi(name: str, partition: str, sort: str | None = None, projection: str = "ALL", *include):
    return Index(name, partition, sort, False, projection, include)


def lsi(name: str, partition: str, sort: str, projection: str = "ALL"):
    return Index(name, partition, sort, True, projection)


@published(
    "second: product catalog of the guide",
    Schema("Id:N"),
    found=("A1",),
    allowed={"A2": "products of one kind with different attributes; ProductCategory tells them"},
    traps={"A18": "ProductCategory names the kind"},
)
def product_catalog(chance: Random, now: float) -> Items:
    """ProductCatalog of the DynamoDB developer guide: Id is a number that counts up."""
    for number in range(400):
        book = number % 3 > 0
        yield {
            "Id": 101 + number,
            "ProductCategory": "Book" if book else "Bicycle",
            "Title": words.some(chance, 10, 40),
            "Price": chance.randint(5, 900),
            **({"ISBN": f"{chance.randrange(10**12):013d}", "PageCount": 300} if book else {}),
            **({} if book else {"BicycleType": "Road", "Brand": "Mountain A"}),
        }


@published(
    "second: ElectroDB customers and orders",
    Schema("pk", "sk"),
    traps={
        "A2": "the keys carry $customer and $order",
        "A18": "__edb_e__ names the entity",
        "E1": "the _1 is the version of the model",
    },
)
def electro_orders(chance: Random, now: float) -> Items:
    """A service of ElectroDB: keys $service#attribute_value, __edb_e__ names the entity."""
    for customer in hexes("electro", 250):
        yield {
            "pk": f"$shop#customerid_{customer}",
            "sk": "$customer_1",
            "customerId": customer,
            "email": f"{customer}@mail.example",
            "__edb_e__": "customer",
            "__edb_v__": "1",
        }
        for _ in range(chance.randint(0, 6)):
            order = words.ulid(when(chance, now, 400), chance)
            yield {
                "pk": f"$shop#customerid_{customer}",
                "sk": f"$order_1#orderid_{order.lower()}",
                "customerId": customer,
                "orderId": order,
                "total": chance.randint(5, 500),
                "__edb_e__": "order",
                "__edb_v__": "1",
            }


@published(
    "second: event store by version",
    Schema("aggregateId", "version:N"),
    traps={
        "E1": "the version is a number",
        "A2": "one kind, the event",
        "A15": "an aggregate has a handful of events",
    },
)
def event_store(chance: Random, now: float) -> Items:
    """An event store as published in several blogs: aggregate id and version."""
    for aggregate in uuids("aggregates", 350):
        for version in range(1, chance.randint(2, 6)):
            yield {
                "aggregateId": aggregate,
                "version": version,
                "eventType": "Opened" if version == 1 else chance.choice(["Paid", "Shipped"]),
                "at": words.iso(when(chance, now, 300)),
                "payload": {"amount": chance.randint(1, 900)},
            }


@published(
    "second: Teleport audit events",
    Schema(
        "SessionID",
        "EventIndex:N",
        (gsi("timesearchV2", "CreatedAtDate", "CreatedAt:N"),),
        "Expires",
    ),
    found=("A3 timesearchV2",),
    traps={"A2": "events of one kind", "A16": "Expires is in seconds and in the future"},
)
def teleport_events(chance: Random, now: float) -> Items:
    """Audit events of Teleport: sessions and event index, index timesearchV2 by day."""
    for session in uuids("teleport", 260):
        start = when(chance, now, 60)
        for number in range(chance.randint(2, 9)):
            at = start + number * 20
            yield {
                "SessionID": session,
                "EventIndex": number,
                "CreatedAtDate": words.day(at),
                "CreatedAt": int(at),
                "EventType": chance.choice(["session.start", "session.data", "exec"]),
                "EventNamespace": "default",
                "FieldsMap": {"user": words.name(chance), "addr": "10.0.0.7"},
                "Expires": int(at + 365 * DAY),
            }


@published(
    "second: AppSync delta sync table",
    Schema("ds_pk", "ds_sk", ttl="_ttl"),
    found=("A3",),
    allowed={"A19": "a handful of keys at a time follows from the day as the key"},
    traps={
        "E1": "the version at the end does not order anything: the time comes first",
        "A16": "_lastChangedAt is milliseconds, but _ttl, the attribute, is seconds",
    },
)
def delta_sync(chance: Random, now: float) -> Items:
    """AppSync's delta sync table: ds_pk is the table's name with the day."""
    for _ in range(900):
        at = when(chance, now, 5)
        yield {
            "ds_pk": f"AppSync-delta-sync-post:{words.day(at)}",
            "ds_sk": f"{words.moment(at):%H:%M:%S.%f}:{words.uuid(chance)}:{chance.randint(1, 9)}",
            "id": words.uuid(chance),
            "title": words.some(chance, 8, 40),
            "_version": chance.randint(1, 9),
            "_lastChangedAt": int(at * 1000),
            "_ttl": int(at + 6 * DAY),
        }


@published(
    "second: events with an index of time stamps",
    Schema("event_id", None, (gsi("timestamp-index", "timestamp"),)),
    found=("A3 timestamp-index",),
)
def hackathon_events(chance: Random, now: float) -> Items:
    """An events table of an AWS hackathon (Terraform): index timestamp-index, only the time."""
    for number in range(700):
        yield {
            "event_id": words.uuid(chance),
            "timestamp": words.iso(now - number * 700 - chance.random() * 99),
            "resource": chance.choice(["vpc", "subnet", "instance"]),
            "action": chance.choice(["create", "update", "delete"]),
        }


@published(
    "second: forum threads of the guide",
    Schema("ForumName", "Subject", (lsi("LastPostIndex", "ForumName", "LastPostDateTime"),)),
    found=("A6",),
    allowed={"A15": "the threads of a forum grow, slowly"},
)
def forum_threads(chance: Random, now: float) -> Items:
    """Thread of the developer guide: ForumName, Subject, LSI LastPostIndex."""
    for number in range(900):
        yield {
            "ForumName": f"Amazon {skewed(chance, words.CITIES)} {number % 7}",
            "Subject": words.some(chance, 12, 40).strip() + f" {chance.getrandbits(24):06x}",
            "LastPostDateTime": words.iso(when(chance, now, 400)),
            "Replies": chance.randint(0, 30),
        }


@published(
    "second: music table with an LSI of albums",
    Schema("Artist", "SongTitle", (lsi("AlbumTitleIndex", "Artist", "AlbumTitle", "KEYS_ONLY"),)),
    found=("A6",),
    traps={"E1": "numbers in titles are padded, and songs are not ordered by them"},
)
def music_table(chance: Random, now: float) -> Items:
    """Music of the guide's pages on local indexes: Artist, SongTitle, LSI AlbumTitleIndex."""
    for number in range(1200):
        yield {
            "Artist": f"{words.FIRST[number % 16]} and the {words.LAST[number // 16 % 15]}s",
            "SongTitle": f"{words.some(chance, 5, 20).strip()} {number:04d}",
            "AlbumTitle": words.some(chance, 5, 20).strip() + "!",
            "Year": chance.randint(1960, 2026),
        }


@published(
    "second: repositories with three overloaded indexes",
    Schema("PK", "SK", tuple(gsi(f"GSI{n}", f"GSI{n}PK", f"GSI{n}SK") for n in (1, 2, 3))),
    traps={
        "A7": "three overloaded indexes serve all the kinds",
        "E1": "numbers are padded to seven digits",
        "A18": "`type` names the kind",
        "I4 GSI1": "an overloaded index: its kinds have no attributes in common",
        "A2": "REPO#, ISSUE# and PR# tell the kinds",
    },
)
def overloaded(chance: Random, now: float) -> Items:
    """GitHub of The DynamoDB Book: three overloaded indexes, type on each item."""
    for repo in hexes("repos", 180):
        owner = chance.choice(words.LAST).lower() + repo[:3]
        yield {
            "PK": f"REPO#{owner}#{repo}",
            "SK": f"REPO#{owner}#{repo}",
            "GSI1PK": f"REPO#{owner}#{repo}",
            "GSI1SK": f"REPO#{owner}#{repo}",
            "GSI3PK": f"ACCOUNT#{owner}",
            "GSI3SK": f"#{words.iso(when(chance, now, 600))}",
            "type": "Repo",
            "repoName": repo,
        }
        for number in range(1, chance.randint(2, 8)):
            issue = chance.random() < 0.6
            yield {
                "PK": f"REPO#{owner}#{repo}",
                "SK": f"{'ISSUE' if issue else 'PR'}#{number:07d}",
                "GSI1PK": f"REPO#{owner}#{repo}",
                "GSI1SK": f"{'ISSUE' if issue else 'PR'}#OPEN#{9999999 - number:07d}",
                "GSI2PK": f"USER#{words.name(chance).lower().replace(' ', '')}",
                "GSI2SK": words.iso(when(chance, now, 600)),
                "type": "Issue" if issue else "PullRequest",
                "title": words.some(chance, 10, 60),
            }


@published(
    "second: Amplify posts by date",
    Schema("id", None, (gsi("postsByDate", "type", "createdAt"),)),
    found=("A9 postsByDate",),
    traps={"I1 postsByDate": "the query asks for all posts in order, so all belong in it"},
)
def amplify_posts(chance: Random, now: float) -> Items:
    """Amplify's example of sorting all posts: type is "Post" on each, index postsByDate."""
    for _ in range(1200):
        at = words.iso(when(chance, now, 500))
        yield {
            "id": words.uuid(chance),
            "__typename": "Post",
            "type": "Post",
            "title": words.some(chance, 10, 60),
            "owner": words.uuid(chance),
            "createdAt": at,
            "updatedAt": at,
        }


@published(
    "second: audit log with one timeline of all",
    Schema("PK", "SK", (gsi("GSI1", "GSI1PK", "GSI1SK"),)),
    found=("A9 GSI1",),
    allowed={"A15": "the log of an actor grows as long as it works"},
    traps={"I1 GSI1": "the timeline wants all items"},
)
def audit_timeline(chance: Random, now: float) -> Items:
    """An audit log as in public single-table code: AUDIT#actor, GSI1PK is AUDITLOG on all."""
    for number in range(1600):
        at = words.iso(when(chance, now, 300))
        yield {
            "PK": f"AUDIT#{hexes('actors', 400)[number % 400]}",
            "SK": f"{at}#{chance.getrandbits(24):06x}",
            "GSI1PK": "AUDITLOG",
            "GSI1SK": at,
            "action": chance.choice(["org.create", "user.update", "rule.delete", "lead.import"]),
            "actor": hexes("actors", 400)[number % 400],
        }


@published("second: chat histories of a language model", Schema("SessionId"), found=("A13",))
def chat_histories(chance: Random, now: float) -> Items:
    """Chat histories as LangChain's DynamoDBChatMessageHistory keeps them: one list an item."""
    for _ in range(320):
        turns = int(chance.random() ** 5 * 300) + 1
        yield {
            "SessionId": words.uuid(chance),
            "History": [
                {
                    "type": "human" if t % 2 == 0 else "ai",
                    "data": {"content": words.text(chance, 1100)},
                }
                for t in range(turns)
            ],
        }


@published(
    "second: states of devices over the years",
    Schema("DeviceID", "State#Date"),
    found=("A15",),
    traps={
        "I4": "the joined text is the key of the table, not of an index",
        "E1": "WARNING1 to WARNING4 have one digit",
    },
)
def telemetry(chance: Random, now: float) -> Items:
    """Device status of the guide's design pages: DeviceID and State#Date, no time to live."""
    for number in range(3000):
        at = now - number * 0.2 * DAY - chance.random() * 9000
        yield {
            "DeviceID": f"d#{skewed(chance, hexes('a15 devices', 40, 5))}",
            "State#Date": f"{mostly(chance, 'NORMAL', 0.8, 'WARNING1')}#{words.iso(at)}",
            "Operator": chance.choice(words.FIRST),
            "Date": words.iso(at),
            "EscalatedTo": "Sara",
        }


@published(
    "second: idempotency records of Powertools",
    Schema("id", None, ttl="expiration"),
    traps={
        "A16": "some are past for minutes, and the milliseconds are of another attribute",
        "A1": "hashes",
    },
)
def powertools(chance: Random, now: float) -> Items:
    """Idempotency records of Powertools for Lambda: id, expiration in seconds, status, data."""
    for _ in range(900):
        yield {
            "id": f"orders-fn.handler#{chance.getrandbits(128):032x}",
            "expiration": int(now + (chance.random() - 0.1) * 3600),
            "in_progress_expiration": int((now + 30) * 1000),
            "status": "COMPLETED",
            "data": '{"statusCode": 200}',
        }


@published(
    "second: Auth.js users, accounts and sessions",
    Schema("pk", "sk", (gsi("GSI1", "GSI1PK", "GSI1SK"),), "expires"),
    allowed={"A9": "a provider's accounts have one key of the index, a third of it here"},
    traps={
        "A16": "only sessions expire; the others have no such attribute",
        "A2": "USER#, ACCOUNT# and SESSION# tell the kinds",
        "A18": "`type` names the kind",
        "I4 GSI1": "an overloaded index",
        "E2": "the mail is an index key of the user itself, not a constraint item",
    },
)
def auth_js(chance: Random, now: float) -> Items:
    """Auth.js's adapter: pk USER#id, sk, GSI1PK and GSI1SK, type, expires in seconds."""
    for user in uuids("authjs", 300):
        yield {
            "pk": f"USER#{user}",
            "sk": f"USER#{user}",
            "GSI1PK": f"USER#{user[:8]}@mail.example",
            "GSI1SK": f"USER#{user[:8]}@mail.example",
            "type": "USER",
            "email": f"{user[:8]}@mail.example",
            "id": user,
        }
        yield {
            "pk": f"USER#{user}",
            "sk": f"ACCOUNT#github#{user[9:13]}",
            "GSI1PK": "ACCOUNT#github",
            "GSI1SK": f"ACCOUNT#{user[9:13]}{user[:8]}",
            "type": "ACCOUNT",
            "userId": user,
        }
        if chance.random() < 0.6:
            token = words.uuid(chance)
            yield {
                "pk": f"USER#{user}",
                "sk": f"SESSION#{token}",
                "GSI1PK": f"SESSION#{token}",
                "GSI1SK": f"SESSION#{token}",
                "type": "SESSION",
                "expires": int(now + chance.random() * 30 * DAY),
            }


@published(
    "second: Teleport state under one key",
    Schema("HashKey", "FullPath", ttl="Expires"),
    metrics=(
        Metric("ConsumedWriteCapacityUnits", 9000),
        Metric("ConsumedReadCapacityUnits", 30000),
    ),
    found=("A19",),
    allowed={
        "A2": "one key for all; the kinds are in the path of the sort key",
        "A18": "a store of values: the kinds are in the path",
        "A15": "one collection is the whole table",
    },
)
def teleport_backend(chance: Random, now: float) -> Items:
    """State of Teleport: HashKey is "teleport" on all items, FullPath sorts them."""
    for _ in range(1800):
        kind = chance.choice(["nodes/default", "tokens", "sessions/web", "roles", "locks"])
        yield {
            "HashKey": "teleport",
            "FullPath": f"teleport/{kind}/{words.uuid(chance)}",
            "Value": chance.randbytes(chance.randint(60, 700)),
            "Timestamp": int(when(chance, now, 30)),
            "Expires": int(now + chance.random() * 9 * DAY),
            "ID": chance.getrandbits(40),
        }


@published(
    "second: leases of the Kinesis Client Library",
    Schema(
        "leaseKey", None, (gsi("LeaseOwnerToLeaseKeyIndex", "leaseOwner", "leaseKey", "KEYS_ONLY"),)
    ),
    stream=updates(1920, 60, lambda old: {"leaseCounter": old["leaseCounter"] + 1}),
    metrics=(Metric("ConsumedWriteCapacityUnits", 1920),),
    traps={
        "A1": "Kinesis names its shards; the table has one small item for each",
        "A8": "each lease counts its own renewals",
        "I1 LeaseOwnerToLeaseKeyIndex": "all owners are asked for",
    },
)
def lease_table(chance: Random, now: float) -> Items:
    """Leases of the Kinesis Client Library: leaseKey is the shard's name, leaseOwner an index."""
    for shard in range(320):
        yield {
            "leaseKey": f"shardId-{shard:012d}",
            "leaseOwner": f"worker-{hexes('kcl', 24, 8)[shard % 24]}",
            "leaseCounter": chance.randint(1, 90_000),
            "checkpoint": f"{49_600_000_000 + shard}{chance.randrange(10**45):045d}",
            "checkpointSubSequenceNumber": 0,
            "ownerSwitchesSinceCheckpoint": 0,
        }


@published(
    "second: game scores of the guide",
    Schema("UserId", "GameTitle", (gsi("GameTitleIndex", "GameTitle", "TopScore:N"),)),
    found=("A9 GameTitleIndex",),
    traps={"A19": "the few titles are keys of the index; users are the table's"},
)
def game_scores(chance: Random, now: float) -> Items:
    """GameScores of the developer guide: UserId, GameTitle, index GameTitleIndex by TopScore."""
    titles = ["Galaxy Invaders", "Meteor Blasters", "Starship X", "Alien Adventure", "Attack Ships"]
    for user in hexes("game scores", 900, 8):
        for place, title in enumerate(titles):
            if chance.random() < (0.2 if place else 0.95):
                yield {
                    "UserId": user,
                    "GameTitle": title,
                    "TopScore": chance.randint(0, 6000),
                    "TopScoreDateTime": words.iso(when(chance, now, 300)),
                    "Wins": chance.randint(0, 90),
                    "Losses": chance.randint(0, 90),
                }


@published(
    "second: sessions of Lucia",
    Schema("sid", None, (gsi("Gs1", "uid"), gsi("Gs2", "typ", "exp:N")), "exp"),
    found=("A9 Gs2",),
    traps={"I1 Gs2": "all sessions are of one type", "A16": "exp is in seconds and ahead"},
)
def lucia(chance: Random, now: float) -> Items:
    """Lucia's adapter: sid, index Gs1 by user, index Gs2 with typ = Session and exp."""
    for _ in range(1100):
        yield {
            "sid": f"{chance.getrandbits(200):050x}",
            "uid": skewed(chance, uuids("lucia", 500), 1.2),
            "typ": "Session",
            "exp": int(now + chance.random() * 30 * DAY),
        }


@published(
    "second: recurring payments of the guide",
    Schema(
        "PK",
        "SK",
        (
            gsi("GSI-1", "NextReminderDate", "LastReminderDate"),
            gsi("GSI-2", "NextPaymentDate", "LastPaymentDate"),
        ),
        "TTL",
    ),
    found=("A18",),
    allowed={"A3": "all that is renewed today gets the same next date: the guide does it so"},
    traps={
        "A2": "ACC#, SUB# and REC# tell the kinds",
        "A16": "only receipts expire",
        "I1 GSI-2": "receipts are not in the index",
        "A7": "two dates that are asked for apart",
    },
)
def recurring(chance: Random, now: float) -> Items:
    """Recurring payments of the guide: ACC#, SUB# and RECEIPT; indexes by the next dates."""
    for account in hexes("recurring", 300):
        for sku in chance.sample(hexes("recurring sku", 40, 6), 2):
            ahead = chance.randint(1, 30)
            yield {
                "PK": f"ACC#{account}",
                "SK": f"SUB#{account}#SKU#{sku}",
                "Email": f"{account}@mail.example",
                "PaymentDay": chance.randint(1, 28),
                "PaymentAmount": chance.randint(5, 90),
                "NextPaymentDate": words.day(now + ahead * DAY),
                "LastPaymentDate": words.day(now + (ahead - 31) * DAY),
                "NextReminderDate": words.day(now + (ahead - 7) * DAY),
                "LastReminderDate": words.day(now + (ahead - 38) * DAY),
                "SKU": sku,
                "CreatedDate": words.iso(when(chance, now, 600)),
            }
            for back in range(1, 4):
                yield {
                    "PK": f"ACC#{account}",
                    "SK": f"REC#{words.iso(now - back * 30 * DAY)}#SKU#{sku}",
                    "Email": f"{account}@mail.example",
                    "SKU": sku,
                    "ProcessedAmount": chance.randint(5, 90),
                    "TTL": int(now + (365 - back * 30) * DAY),
                }


@published(
    "second: complaints of the guide",
    Schema(
        "PK",
        "SK",
        (
            gsi("Customer_complaint_GSI", "customer_id", "PK"),
            gsi("Severity_GSI", "severity", "PK"),
            gsi("Escalations_GSI", "escalated_to", "escalation_time"),
            gsi("Agents_Comments_GSI", "agentID", "comm_date"),
        ),
    ),
    found=("A9 Severity_GSI", "A18"),
    allowed={"A7": "four indexes, each of its own kind of item; two overloaded ones would do"},
    traps={
        "A2": "metadata and comm# tell the kinds",
        "I1 Escalations_GSI": "only escalated complaints are in it",
        "A9 Escalations_GSI": "eight agents of a sparse index",
    },
)
def complaints(chance: Random, now: float) -> Items:
    """Complaint management of the guide: metadata and communications, four indexes."""
    for number in range(400):
        complaint = f"Complaint{hexes('complaints', 400, 8)[number]}"
        opened = when(chance, now, 300)
        yield {
            "PK": complaint,
            "SK": "metadata",
            "customer_id": f"custXYZ{chance.choice(hexes('complainers', 200, 6))}",
            "severity": mostly(chance, "P3", 0.7, "P1", "P2"),
            "creation_time": words.iso(opened),
            "complaint_description": words.some(chance, 40, 200),
            **(
                {
                    "escalated_to": f"Agent{chance.choice('ABCDEFGH')}",
                    "escalation_time": words.iso(now),
                }
                if number % 12 == 0
                else {}
            ),
        }
        for _ in range(chance.randint(1, 5)):
            at = words.iso(opened + chance.random() * DAY)
            yield {
                "PK": complaint,
                "SK": f"comm#{at}#{chance.getrandbits(20):05x}",
                "comm_date": at,
                "agentID": f"Agent{chance.choice(hexes('agents', 90, 4))}",
                "comm_text": words.some(chance, 20, 300),
            }


@published(
    "second: game profiles of the guide",
    Schema("PK", "SK"),
    found=("A18",),
    traps={"A2": "#METADATA#, FRIENDS# and ITEMS# tell the kinds", "A15": "friends are few"},
)
def game_profile(chance: Random, now: float) -> Items:
    """Game profile of the guide: playerID, and sort keys #METADATA#, FRIENDS# and ITEMS#."""
    for player in hexes("profiles", 260, 10):
        yield {
            "PK": f"player{player}",
            "SK": f"#METADATA#player{player}",
            "email": f"{player}@mail.example",
            "money": chance.randint(0, 9000),
            "experience": chance.randint(0, 90000),
        }
        for friend in chance.sample(hexes("profiles", 260, 10), 3):
            yield {"PK": f"player{player}", "SK": f"FRIENDS#player{friend}", "since": "2026"}
        for item in chance.sample(["Sword", "Shield", "Bow", "Helmet", "Boots"], 2):
            yield {
                "PK": f"player{player}",
                "SK": f"ITEMS#{item}",
                "price": chance.randint(1, 900),
                "attack": chance.randint(1, 99),
            }


@published(
    "second: social network of the guide",
    Schema("PK", "SK"),
    found=("A18",),
    allowed={"A8": "a post's likes are one item each"},
    traps={"A2": "u# and p# begin the keys, and their ends tell the rest"},
)
def social_network(chance: Random, now: float) -> Items:
    """Social network of the guide: u#id, u#id#follower, u#id#post, p#id#likelist, p#id#count."""
    users = hexes("social", 150, 10)
    for user in users:
        yield {
            "PK": f"u#{user}",
            "SK": "info",
            "name": words.name(chance),
            "content": words.some(chance, 10, 80),
            "imageUrl": "s3://pics/x",
        }
        for follower in chance.sample(users, 4):
            yield {"PK": f"u#{user}#follower", "SK": f"u#{follower}"}
        for _ in range(2):
            post = words.ulid(when(chance, now, 300), chance)
            yield {
                "PK": f"u#{user}#post",
                "SK": f"p#{post}",
                "content": words.some(chance, 10, 200),
                "timestamp": int(when(chance, now, 300)),
            }
            yield {"PK": f"p#{post}#likecount", "SK": "count", "etc": chance.randint(0, 90)}
            for fan in chance.sample(users, 2):
                yield {"PK": f"p#{post}#likelist", "SK": f"u#{fan}"}


@published(
    "second: timeline of a scalable twitter",
    Schema("ID", "DataType", (gsi("GSI-1", "DataValue", "DataType"),)),
    allowed={"A15": "a timeline grows", "A18": "DataType begins with the kind, and goes on"},
    traps={"A2": "the sort key begins with userProfile, followee_ or timeline_"},
)
def twitter(chance: Random, now: float) -> Items:
    """scalable-twitter on GitHub: ID and DataType, GSI-1 by DataValue and DataType."""
    users = uuids("scalable twitter", 220)
    for user in users:
        yield {
            "ID": user,
            "DataType": "userProfile",
            "DataValue": f"{words.name(chance).replace(' ', '_').lower()}_{user[:4]}",
        }
        for followee in chance.sample(users, 3):
            yield {"ID": user, "DataType": f"followee_{followee}", "DataValue": followee}
        for _ in range(3):
            tweet = words.ulid(when(chance, now, 90), chance)
            yield {"ID": user, "DataType": f"timeline_{tweet}", "DataValue": tweet}


@published(
    "second: serverless shopping cart",
    Schema("pk", "sk", ttl="expirationTime"),
    found=("A18",),
    traps={
        "A8": "a total for each product, of sixty",
        "A2": "user#, cart# and product# tell the kinds",
        "A16": "totals do not expire, on purpose",
    },
)
def shopping_cart(chance: Random, now: float) -> Items:
    """aws-serverless-shopping-cart: user# and cart# with product#, expirationTime; totals."""
    products = uuids("cart products", 60)
    for product in products:
        yield {"pk": f"product#{product}", "sk": "totalquantity", "quantity": chance.randint(1, 40)}
    for number in range(300):
        owner = ("user#", "cart#")[number % 2] + uuids("cart owners", 300)[number]
        for product in chance.sample(products, chance.randint(1, 6)):
            yield {
                "pk": owner,
                "sk": f"product#{product}",
                "quantity": chance.randint(1, 4),
                "productDetail": {"name": words.some(chance, 5, 20), "price": 900},
                "expirationTime": int(now + chance.random() * 7 * DAY),
            }


def words_of(seed: str, count: int, now: float) -> list[str]:
    """Return ULIDs of the last year."""
    chance = Random(seed)
    return [words.ulid(when(chance, now, 365), chance) for _ in range(count)]


@published(
    "second: accounts of OneTable",
    Schema("pk", "sk", (gsi("gs1", "gs1pk", "gs1sk"),)),
    traps={
        "A18": "`_type` names the kind",
        "A2": "account# and user# tell the kinds",
        "I4 gs1": "one attribute with a tag is not a join of several",
        "A9 gs1": "each mail is its own key",
    },
)
def onetable(chance: Random, now: float) -> Items:
    """OneTable's sample: account and user with _type, pk account#id, gs1pk by email."""
    for account in words_of("onetable", 150, now):
        yield {
            "pk": f"account#{account}",
            "sk": "account#",
            "_type": "Account",
            "id": account,
            "name": words.name(chance),
        }
        for _ in range(chance.randint(1, 6)):
            user = words.ulid(when(chance, now, 400), chance)
            mail = f"{user[-8:].lower()}@mail.example"
            yield {
                "pk": f"account#{account}",
                "sk": f"user#{user}",
                "_type": "User",
                "id": user,
                "accountId": account,
                "email": mail,
                "gs1pk": f"user#{mail}",
                "gs1sk": "user#",
            }


@published(
    "second: Iceberg's catalog",
    Schema("identifier", "namespace", (gsi("namespace-identifier", "namespace", "identifier"),)),
    allowed={
        "A2": "tables have no tag, but NAMESPACE has",
        "A18": "no attribute names tables and namespaces",
    },
    traps={"A16": "no time to live: times in milliseconds are only times"},
)
def iceberg(chance: Random, now: float) -> Items:
    """Iceberg's DynamoDB catalog: identifier and namespace, index namespace-identifier."""
    for space in hexes("iceberg", 20, 5):
        yield {
            "identifier": "NAMESPACE",
            "namespace": f"db_{space}",
            "v": words.uuid(chance),
            "created_at": int(when(chance, now, 900) * 1000),
            "p.owner": "etl",
        }
        for _ in range(24):
            yield {
                "identifier": f"db_{space}.t_{chance.getrandbits(36):09x}",
                "namespace": f"db_{space}",
                "v": words.uuid(chance),
                "updated_at": int(when(chance, now, 90) * 1000),
                "p.table_type": "ICEBERG",
                "p.metadata_location": f"s3://lake/{chance.getrandbits(64):016x}.json",
            }


@published(
    "second: index of Loki",
    Schema("h", "r:B"),
    traps={
        "A3": "the day stands between the tenant and the label",
        "A15": "a new key for each day",
        "E1": "sort keys are binary",
    },
)
def loki_index(chance: Random, now: float) -> Items:
    """Index of Cortex and Loki: h is tenant, day and label; r and c are binary."""
    for _ in range(1500):
        day = int(now // DAY) - chance.randrange(20)
        label = chance.choice(["job", "pod", "namespace", "level", "app"])
        yield {
            "h": f"{chance.choice(hexes('loki', 30, 4))}:d{day}:logs:{label}",
            "r": chance.randbytes(24),
            "c": chance.randbytes(12),
        }


@published(
    "second: sessions of Express",
    Schema("id", None, ttl="expires"),
    traps={
        "A16": "`expires` is in seconds; the text inside `sess` is the cookie's",
        "A2": "one kind",
        "A18": "one kind, and `type` names it",
    },
)
def express_sessions(chance: Random, now: float) -> Items:
    """connect-dynamodb: id sess:…, expires in seconds, sess as JSON text."""
    for _ in range(1000):
        yield {
            "id": f"sess:{chance.getrandbits(180):045x}",
            "expires": int(now + chance.random() * DAY),
            "type": "connect-session",
            "sess": '{"cookie":{"originalMaxAge":86400000,"expires":"2026-12-01T00:00:00Z"}}',
        }


@published(
    "second: readings that an IoT rule writes",
    Schema("deviceid", "timestamp:N"),
    found=("A15",),
    traps={"A16": "no time to live: the time stamp is only in milliseconds"},
)
def iot_rule(chance: Random, now: float) -> Items:
    """The items of an AWS IoT rule in many tutorials: deviceid, timestamp in ms, payload."""
    for number in range(3000):
        yield {
            "deviceid": f"sensor-{skewed(chance, hexes('iot rule', 50, 6), 1.5)}",
            "timestamp": int((now - (3000 - number) * 9000) * 1000) + number % 997,
            "payload": {"temperature": chance.randint(-9, 40), "humidity": chance.randint(9, 99)},
        }


@published(
    "second: online features of Feast",
    Schema("entity_id"),
    traps={"A1": "hashes of entities", "A13": "items of 150 bytes"},
)
def feast(chance: Random, now: float) -> Items:
    """Feast's online store: entity_id, event_ts and the map values."""
    for _ in range(900):
        yield {
            "entity_id": f"{chance.getrandbits(128):032x}",
            "event_ts": words.moment(when(chance, now, 9)).isoformat(),
            "values": {"conv_rate": chance.randbytes(9), "acc_rate": chance.randbytes(9)},
        }


@published(
    "second: locks of Terraform",
    Schema("LockID"),
    allowed={
        "A2": "locks and digests, which end with -md5, in one small table",
        "A18": "locks and digests, which no attribute names",
    },
    traps={"E2": "a digest has no lock while nobody works", "A1": "paths"},
)
def terraform_locks(chance: Random, now: float) -> Items:
    """Terraform's lock table: LockID is the path of a state, and of its digest."""
    for number in range(330):
        path = f"tf-states/{hexes('tf', 330, 6)[number]}/{chance.choice(['prod', 'dev'])}.tfstate"
        yield {"LockID": f"{path}-md5", "Digest": f"{chance.getrandbits(128):032x}"}
        if number % 40 == 0:
            yield {"LockID": path, "Info": '{"Operation":"OperationTypeApply","Who":"ci"}'}


@published(
    "second: shop of the book with mails",
    Schema("PK", "SK", (gsi("GSI1", "GSI1PK", "GSI1SK"),)),
    traps={
        "E2": "each mail has its customer",
        "A2": "CUSTOMER#, ORDER# and ITEM# tell the kinds",
        "A18": "`Type` names the kind",
        "A15": "a customer has a few orders",
    },
)
def commerce(chance: Random, now: float) -> Items:
    """E-commerce of The DynamoDB Book: CUSTOMER#, CUSTOMEREMAIL#, ORDER# and ITEM#, Type."""
    for number, name in enumerate(hexes("commerce", 250, 8)):
        yield {
            "PK": f"CUSTOMER#{name}",
            "SK": f"CUSTOMER#{name}",
            "Type": "Customer",
            "Username": name,
            "Email": f"{name}@mail.example",
        }
        yield {
            "PK": f"CUSTOMEREMAIL#{name}@mail.example",
            "SK": f"CUSTOMEREMAIL#{name}@mail.example",
            "Type": "CustomerEmail",
            "Username": name,
        }
        for _ in range(number % 4):
            order = words.ksuid(when(chance, now, 300), chance)
            yield {
                "PK": f"CUSTOMER#{name}",
                "SK": f"#ORDER#{order}",
                "GSI1PK": f"ORDER#{order}",
                "GSI1SK": f"ORDER#{order}",
                "Type": "Order",
                "Status": chance.choice(["PLACED", "SHIPPED"]),
            }
            line = f"{chance.getrandbits(32):08x}"
            yield {
                "PK": f"ORDER#{order}#ITEM#{line}",
                "SK": f"ORDER#{order}#ITEM#{line}",
                "GSI1PK": f"ORDER#{order}",
                "GSI1SK": f"ITEM#{line}",
                "Type": "OrderItem",
                "Amount": chance.randint(1, 9),
            }
