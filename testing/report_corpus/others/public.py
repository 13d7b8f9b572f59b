"""Tables with schemas that others have published: Terraform's locks, design patterns."""

from collections.abc import Callable, Iterator
from random import Random
from typing import Any

from testing.report_corpus import words
from testing.report_corpus.case import DAY, Index, Item, Metric, Schema, Write, table
from testing.report_corpus.words import day, iso, name, some, ulid, uuid

Items = Iterator[Item]


def published(named: str, schema: Schema, **more: Any) -> Callable[[Any], Any]:
    """Declare a table with a published schema, whose items the decorated function yields."""
    return table(named, "real", schema, **more)


def when(c: Random, now: float, days: float = 365) -> float:
    """Return a random time of the last days."""
    return now - c.random() * days * DAY


def skew(c: Random, below: int, power: float = 2.5) -> int:
    """Return a random number below a limit; low numbers are more common."""
    return int(below * c.random() ** power)


def code(c: Random, length: int = 10) -> str:
    return "".join(c.choices("abcdefghjkmnpqrstuvwxyz23456789", k=length))


def mail(c: Random) -> str:
    return f"{name(c).replace(' ', '.').lower()}{c.randrange(10**5)}@{code(c, 5)}.example"


def ids(c: Random, how_many: int, make: Callable[[Random], str] = uuid) -> list[str]:
    return [make(c) for _ in range(how_many)]


@published(
    "toolbox-pokemons",
    Schema("PK", "SK"),
    traps={"A18": "_et names the kind", "A2": "the keys begin with a tag"},
)
def toolbox_pokemons(c: Random, now: float) -> Items:
    """dynamodb-toolbox: the entities of its documentation, with _et, _ct and _md."""
    for _ in range(150):
        trainer = code(c, 10)
        created = iso(when(c, now))
        both = {"_ct": created, "_md": created}
        yield both | {
            "PK": f"TRAINER#{trainer}",
            "SK": "TRAINER",
            "_et": "TRAINER",
            "trainerName": name(c),
        }
        for _ in range(c.randint(1, 6)):
            yield both | {
                "PK": f"TRAINER#{trainer}",
                "SK": f"POKEMON#{uuid(c)}",
                "_et": "POKEMON",
                "name": some(c, 5, 12),
                "level": c.randint(1, 99),
            }


@published(
    "ReoccurringPayments",
    Schema(
        "PK",
        "SK",
        indexes=(
            Index(
                "GSI-1",
                "NextReminderDate",
                "LastReminderDate",
                False,
                "INCLUDE",
                ("SKU", "Email", "NextPaymentDate"),
            ),
            Index(
                "GSI-2", "NextPaymentDate", "LastPaymentDate", False, "INCLUDE", ("SKU", "Email")
            ),
        ),
    ),
    found=("A3 GSI-1", "A3 GSI-2", "A18"),
    traps={"A2": "ACCOUNT#, SUB# and REC# are tags"},
)
def reoccurring_payments(c: Random, now: float) -> Items:
    """aws-dynamodb-examples, schema_design/SchemaExamples/RecurringPayments."""
    for _ in range(320):
        account = f"ACCOUNT#{code(c, 9)}"
        sku = f"SKU{code(c, 5)}"
        next_day = now + c.random() * 30 * DAY
        yield {
            "PK": account,
            "SK": f"SUB#{uuid(c)}#SKU#{sku}",
            "Email": mail(c),
            "SKU": sku,
            "PaymentAmount": c.randrange(500, 5000),
            "PaymentDay": int(day(next_day)[8:]),
            "NextPaymentDate": day(next_day),
            "LastPaymentDate": day(next_day - 30 * DAY),
            "NextReminderDate": day(next_day - 7 * DAY),
            "LastReminderDate": day(next_day - 37 * DAY),
        }
        for month in range(c.randint(0, 5)):
            at = next_day - (month + 1) * 30 * DAY
            yield {
                "PK": account,
                "SK": f"REC#{iso(at)}#SKU#{sku}",
                "ProcessedAmount": c.randrange(500, 5000),
                "ProcessedDate": iso(at),
                "Email": mail(c),
                "TTL": int(at + 365 * DAY),
            }


@published(
    "Thread",
    Schema(
        "ForumName",
        "Subject",
        indexes=(Index("LastPostIndex", "ForumName", "LastPostDateTime", local=True),),
    ),
    found=("A6",),
    allowed={
        "A15": "a forum's threads do grow, slowly",
        "A19": "forums are few, but their number is the application's",
    },
)
def thread(c: Random, now: float) -> Items:
    """AWS's developer guide: the Forum, Thread and Reply tables; its LSI LastPostIndex."""
    forums = ids(c, 60, lambda c: f"Amazon {code(c, 6)}")
    for _ in range(900):
        yield {
            "ForumName": c.choice(forums),
            "Subject": some(c, 20, 60) + code(c, 5),
            "LastPostDateTime": iso(when(c, now, 900)),
            "LastPostedBy": mail(c),
            "Views": skew(c, 4000),
            "Replies": skew(c, 60),
            "Tags": ["index", "primarykey"],
        }


@published(
    "library-electro",
    Schema(
        "pk",
        "sk",
        indexes=tuple(
            Index(f"gsi{n}pk-gsi{n}sk-index", f"gsi{n}pk", f"gsi{n}sk") for n in (1, 2, 3)
        ),
    ),
    traps={
        "A18": "__edb_e__ names the kind",
        "A2": "the keys begin with $library, the sort keys with the entity",
        "A7": "three overloaded indexes",
    },
    allowed={"I4": "authors' names are joined, though books and authors share the index"},
)
def library_electro(c: Random, now: float) -> Items:
    """ElectroDB: examples/library, its books, members and authors."""
    members = ids(c, 150)
    for member in members:
        yield {
            "pk": f"$library#memberid_{member}",
            "sk": "$account#member_1",
            "memberId": member,
            "name": name(c),
            "__edb_e__": "member",
            "__edb_v__": "1",
        }
    for _ in range(120):
        isbn, first, last = code(c, 13), c.choice(words.FIRST), c.choice(words.LAST)
        title, released = some(c, 8, 30), day(when(c, now, 9000))
        for book in ids(c, c.randint(1, 5)):
            item = {
                "pk": f"$library#isbn_{isbn}",
                "sk": f"$detail#book_1#bookid_{book}",
                "gsi2pk": f"$library#authorlastname_{last}#authorfirstname_{first}".lower(),
                "gsi2sk": "$works#book_1#loanenddate_",
                "gsi3pk": f"$library#booktitle_{title}",
                "gsi3sk": f"$titles#book_1#releasedate_{released}",
                "bookId": book,
                "isbn": isbn,
                "bookTitle": title,
                "releaseDate": released,
                "authorFirstName": first,
                "authorLastName": last,
                "__edb_e__": "book",
                "__edb_v__": "1",
            }
            if c.random() < 0.4:
                member, end = c.choice(members), day(now + c.random() * 20 * DAY)
                item |= {
                    "gsi1pk": f"$library#memberid_{member}",
                    "gsi1sk": f"$account#book_1#loanenddate_{end}",
                    "memberId": member,
                    "loanEndDate": end,
                    "gsi2sk": f"$works#book_1#loanenddate_{end}",
                }
            yield item


@published(
    "taskr-electro",
    Schema("pk", "sk", indexes=(Index("gsi1pk-gsi1sk-index", "gsi1pk", "gsi1sk"),)),
    found=("I4 gsi1pk-gsi1sk-index",),
    traps={"A2": "one kind, its keys begin with $taskapp"},
)
def taskr_electro(c: Random, now: float) -> Items:
    """ElectroDB: examples/taskapp, its entity tasks alone in a table, by project."""
    people, projects = ids(c, 80), ids(c, 90)
    for _ in range(1000):
        task, project, person = uuid(c), c.choice(projects), c.choice(people)
        status, points = c.choice(["open", "in-progress", "closed"]), f"{c.randint(1, 21):02}"
        yield {
            "pk": f"$taskapp#task_{task}",
            "sk": f"$tasks_1#project_{project}#employee_{person}",
            "gsi1pk": f"$taskapp#project_{project}#status_{status}",
            "gsi1sk": f"$tasks_1#employee_{person}#points_{points}",
            "task": task,
            "project": project,
            "employee": person,
            "status": status,
            "points": points,
            "__edb_e__": "tasks",
            "__edb_v__": "1",
        }


def wcu(per_minute: float, index: str = "", **more: Any) -> Metric:
    return Metric("ConsumedWriteCapacityUnits", per_minute, index, **more)


def rcu(per_minute: float, index: str = "", **more: Any) -> Metric:
    return Metric("ConsumedReadCapacityUnits", per_minute, index, **more)


def paced(
    per_second: float, seconds: float, make: Callable[[float, int], tuple[Item | None, Item | None]]
) -> Iterator[Write]:
    """Yield writes at a constant rate, the last one half a minute ago.

    make: Returns the old and the new image of a write, given its time and number.
    """
    how_many = int(per_second * seconds)
    for number in range(how_many):
        ago = 30 + seconds * (1 - number / how_many)
        old, new = make(-ago, number)
        yield Write(ago, old, new)


def people(c: Random, now: float, how_many: int = 900) -> Items:
    """Yield users with an e-mail, a city and a time."""
    for user in ids(c, how_many):
        yield {
            "userId": user,
            "email": mail(c),
            "city": f"{c.choice(words.CITIES)}-{c.randrange(9)}",
            "seen": iso(when(c, now, 60)),
            "name": name(c),
        }


@published(
    "Chat",
    Schema("PK", "SK", indexes=(Index("RoomID_Comment_IDX", "RoomID", "CreatedAt"),)),
    found=("A18",),
    traps={"A2": "User: and Room: are tags"},
    allowed={"A15": "a user's comments grow, slowly", "A9": "a favourite room"},
)
def chat(c: Random, now: float) -> Items:
    """aws-dynamodb-examples, schema_design/SchemaExamples/ChatSystem."""
    rooms, users = (
        ids(c, 50, lambda c: some(c, 5, 9) + code(c, 2)),
        ids(c, 250, lambda c: code(c, 7)),
    )
    for room in rooms:
        yield {"PK": f"Room:{room}", "SK": "meta", "CreatedBy": c.choice(users)}
    for _ in range(1600):
        at = iso(when(c, now, 300))
        yield {
            "PK": f"User:{c.choice(users)}",
            "SK": at,
            "RoomID": rooms[skew(c, 50, 1.3)],
            "Comment": some(c, 5, 90),
            "CreatedAt": at,
        }


@published(
    "session_store",
    Schema("PK", "SK", indexes=(Index("GSI1_inverse", "SK", "PK"),)),
    found=("A18",),
    traps={"A2": "suuid#, c# and child# are tags", "I4 GSI1_inverse": "the table's own keys"},
)
def session_store(c: Random, now: float) -> Items:
    """aws-dynamodb-examples, schema_design/SchemaExamples/SessionManagement."""
    for session in ids(c, 500, lambda c: f"suuid#{code(c, 8)}"):
        yield {
            "PK": session,
            "SK": f"c#{code(c, 6).upper()}",
            "last_login_time": iso(when(c, now, 20)),
            "access_token": code(c, 8),
            "session_state": c.choice(["active", "closing"]),
        }
        for _ in range(c.randint(0, 3)):
            yield {
                "PK": session,
                "SK": f"child#suuid#{code(c, 8)}",
                "access_token": code(c, 8),
                "session_state": "active",
            }


@published(
    "SNS",
    Schema("PK", "SK"),
    found=("A18",),
    traps={"A2": "u# and p# are tags, and the part of it follows", "A1": "ids are random"},
    allowed={"A15": "followers of a celebrity"},
)
def sns(c: Random, now: float) -> Items:
    """aws-dynamodb-examples, schema_design/SchemaExamples/SocialNetwork."""
    users = [f"u#{c.randrange(10**8, 10**9)}" for _ in range(150)]
    for user in users:
        yield {"PK": user, "SK": "info", "name": name(c), "content": some(c, 20, 90)}
        yield {"PK": user, "SK": "count", "follower#": skew(c, 90), "following#": skew(c, 90)}
        for follower in c.sample(users, c.randint(1, 6)):
            yield {"PK": f"{user}#follower", "SK": follower}
            yield {"PK": f"{user}#following", "SK": follower}


@published(
    "onetable-overview",
    Schema("pk", "sk", indexes=(Index("gs1", "gs1pk", "gs1sk", False, "KEYS_ONLY"),)),
    found=("A9 gs1",),
    traps={"A18": "_type names the kind", "A2": "account#, user#, product#, invoice# are tags"},
    allowed={"I4": "name and id are joined, in an index of four kinds"},
)
def onetable_overview(c: Random, now: float) -> Items:
    """OneTable: samples/overview; each kind has one key in gs1."""
    for _ in range(120):
        account, title = ulid(when(c, now), c), some(c, 6, 14)
        key = f"account#{account}"
        yield {
            "pk": key,
            "sk": "account#",
            "_type": "Account",
            "id": account,
            "name": title,
            "gs1pk": "account#",
            "gs1sk": f"account#{title}{account}",
        }
        for _ in range(c.randint(1, 2)):
            user, who, email = ulid(when(c, now), c), name(c), mail(c)
            yield {
                "pk": key,
                "sk": f"user#{email}",
                "_type": "User",
                "id": user,
                "name": who,
                "email": email,
                "gs1pk": "user#",
                "gs1sk": f"user#{who}#{user}",
            }
        for _ in range(c.randint(3, 14)):
            invoice, at = ulid(when(c, now), c), iso(when(c, now))
            yield {
                "pk": key,
                "sk": f"invoice#{invoice}",
                "_type": "Invoice",
                "id": invoice,
                "date": at,
                "total": c.randrange(99, 9999),
                "gs1pk": "invoice#",
                "gs1sk": f"invoice#{at}#{invoice}",
            }


@published(
    "Music",
    Schema("Artist", "SongTitle", indexes=(Index("AlbumTitle-index", "AlbumTitle"),)),
    traps={"A15": "an artist's songs", "A2": "one kind", "A18": "one kind"},
)
def music(c: Random, now: float) -> Items:
    """AWS's developer guide: the table Music."""
    for artist in ids(c, 150, lambda c: f"{name(c)} Band {code(c, 3)}"):
        for _ in range(c.randint(1, 3)):
            album = some(c, 6, 25) + code(c, 2)
            for _ in range(c.randint(1, 5)):
                yield {
                    "Artist": artist,
                    "SongTitle": some(c, 6, 25) + code(c, 3),
                    "AlbumTitle": album,
                    "Awards": skew(c, 12),
                }


@published(
    "GameScores",
    Schema("UserId", "GameTitle", indexes=(Index("GameTitleIndex", "GameTitle", "TopScore:N"),)),
    traps={"A9 GameTitleIndex": "forty games", "A6": "the index is global", "A15": "few games"},
)
def game_scores(c: Random, now: float) -> Items:
    """AWS's developer guide: the table GameScores and its index GameTitleIndex."""
    games = ids(c, 40, lambda c: some(c, 6, 16) + code(c, 2))
    for user in ids(c, 400, lambda c: code(c, 10)):
        for game in c.sample(games, c.randint(1, 5)):
            yield {
                "UserId": user,
                "GameTitle": game,
                "TopScore": skew(c, 9000),
                "TopScoreDateTime": iso(when(c, now, 900)),
                "Wins": skew(c, 80),
                "Losses": skew(c, 80),
            }


@published(
    "ProductCatalog",
    Schema("Id:N"),
    found=("A1",),
    traps={"A18": "ProductCategory names Book and Bicycle", "A2": "all are products"},
)
def product_catalog(c: Random, now: float) -> Items:
    """AWS's developer guide: the table ProductCatalog, with its ids from 101 on."""
    for number in range(101, 801):
        item: Item = {"Id": number, "Title": some(c, 8, 30), "Price": c.randrange(5, 900)}
        if number % 3:
            item |= {"ProductCategory": "Book", "ISBN": code(c, 13), "PageCount": 300}
        else:
            item |= {"ProductCategory": "Bicycle", "Brand": code(c, 5), "Color": ["Red", "Black"]}
        yield item


@published(
    "Reply",
    Schema(
        "Id",
        "ReplyDateTime",
        indexes=(Index("PostedBy-Message-Index", "PostedBy", "Message", False, "KEYS_ONLY"),),
    ),
    traps={
        "I4 PostedBy-Message-Index": "forum and subject are joined in the table's key",
        "A15": "a thread has some replies",
    },
)
def reply(c: Random, now: float) -> Items:
    """AWS's developer guide: the table Reply, whose Id is forum and subject."""
    people_ = ids(c, 120, mail)
    for _ in range(300):
        thread_id = f"Amazon {code(c, 6)}#{some(c, 20, 40)}{code(c, 3)}"
        for _ in range(c.randint(1, 8)):
            yield {
                "Id": thread_id,
                "ReplyDateTime": iso(when(c, now, 700)),
                "Message": some(c, 20, 200),
                "PostedBy": c.choice(people_),
            }


@published(
    "pynamo-threads",
    Schema("forum_name", "subject", indexes=(Index("view-index", "views:N"),)),
    found=("A9 view-index",),
    allowed={"I1": "what is asked for may be those with some views"},
)
def pynamo_threads(c: Random, now: float) -> Items:
    """PynamoDB's documentation: Thread with ViewIndex, an index by the number of views."""
    forums = ids(c, 90, lambda c: code(c, 8))
    for _ in range(1100):
        yield {
            "forum_name": c.choice(forums),
            "subject": some(c, 15, 50) + code(c, 4),
            "views": 0 if c.random() < 0.8 else skew(c, 500),
            "replies": skew(c, 9),
            "last_post_datetime": iso(when(c, now)),
        }


@published(
    "Complaint_management_system",
    Schema(
        "PK",
        "SK",
        indexes=(
            Index("Customer_Complaint_GSI", "customer_id", "complaint_id"),
            Index("Escalations_GSI", "escalated_to", "escalation_time"),
            Index("Agents_Comments_GSI", "agentID", "comm_date"),
        ),
    ),
    found=("A18",),
    traps={
        "A7": "each index has the items of one question",
        "A2": "metadata and comm# tell the kind",
        "A1": "Complaint and a number, but with gaps and in no order",
        "A6": "all are global",
    },
)
def complaint_management_system(c: Random, now: float) -> Items:
    """aws-dynamodb-examples, schema_design/SchemaExamples/ComplainManagement."""
    agents, customers = ids(c, 70, lambda c: f"Agent{code(c, 4)}"), ids(c, 300)
    for number in c.sample(range(10**6, 10**7), 350):
        key, created = f"Complaint{number}", when(c, now, 700)
        item = {
            "PK": key,
            "SK": "metadata",
            "customer_id": c.choice(customers),
            "complaint_id": key,
            "current_state": c.choice(["waiting", "assigned", "investigating", "resolved"]),
            "creation_time": iso(created),
            "severity": c.choice(["P1", "P2", "P3"]),
            "complaint_description": some(c, 30, 200),
        }
        if c.random() < 0.15:
            item |= {"escalated_to": c.choice(agents), "escalation_time": iso(created + 90_000)}
        yield item
        for step in range(c.randint(0, 5)):
            at, comment = iso(created + step * 40_000), code(c, 6)
            yield {
                "PK": key,
                "SK": f"comm#{at}#{comment}",
                "comm_id": comment,
                "comm_date": at,
                "complaint_state": "investigating",
                "comm_text": some(c, 20, 200),
                "agentID": c.choice(agents),
            }


@published(
    "orders-consumer-leases",
    Schema("leaseKey"),
    traps={
        "A1": "Kinesis gives shards their numbers, and they are few",
        "A8": "leaseCounter goes up every few seconds, of each shard: that is a heartbeat",
        "H7": "some writes a second",
    },
    stream=lambda c, now, items: paced(
        12, 120, lambda at, n: (x := items[n % len(items)], x | {"leaseCounter": 90_000 + n})
    ),
    metrics=(wcu(720), rcu(300)),
)
def orders_consumer_leases(c: Random, now: float) -> Items:
    """The Kinesis Client Library: its lease table, an item for each shard."""
    for shard in range(64):
        yield {
            "leaseKey": f"shardId-{shard:012}",
            "leaseCounter": c.randrange(90_000),
            "leaseOwner": uuid(c),
            "checkpoint": str(c.randrange(10**55, 10**56)),
            "ownerSwitchesSinceCheckpoint": 0,
        }


@published("terraform-locks", Schema("LockID"))
def terraform_locks(c: Random, now: float) -> Items:
    """Terraform: the lock table of its S3 backend."""
    for _ in range(300):
        yield {
            "LockID": f"acme-state/{code(c, 8)}/{c.choice(['dev', 'prod'])}/terraform.tfstate-md5",
            "Digest": code(c, 32),
        }


@published(
    "express-sessions",
    Schema("id", ttl="expires"),
    traps={"A16": "seconds, of the coming day", "A2": "one kind, with the prefix sess:"},
)
def express_sessions(c: Random, now: float) -> Items:
    """connect-dynamodb: the sessions of an Express application."""
    for _ in range(900):
        yield {
            "id": f"sess:{code(c, 32)}",
            "expires": int(now + c.random() * DAY),
            "type": "connect-session",
            "sess": '{"cookie":{"originalMaxAge":86400000},"u":"' + code(c, 8) + '"}',
        }


@published(
    "next-auth",
    Schema("pk", "sk", indexes=(Index("GSI1", "GSI1PK", "GSI1SK"),), ttl="expires"),
    traps={
        "A18": "type names USER, ACCOUNT and SESSION",
        "I4 GSI1": "three kinds with different attributes",
        "A16": "seconds, of sessions alone",
        "E2": "accounts lie beside their users",
    },
)
def next_auth(c: Random, now: float) -> Items:
    """Auth.js: the table of its DynamoDB adapter."""
    for user in ids(c, 350):
        email, key = mail(c), f"USER#{user}"
        yield {
            "pk": key,
            "sk": key,
            "GSI1PK": f"USER#{email}",
            "GSI1SK": f"USER#{email}",
            "id": user,
            "type": "USER",
            "email": email,
        }
        account = f"ACCOUNT#github#{c.randrange(10**7, 10**8)}"
        yield {
            "pk": key,
            "sk": account,
            "GSI1PK": account,
            "GSI1SK": account,
            "type": "ACCOUNT",
            "userId": user,
        }
        for session in ids(c, c.randint(0, 2)):
            yield {
                "pk": key,
                "sk": f"SESSION#{session}",
                "GSI1PK": f"SESSION#{session}",
                "GSI1SK": f"SESSION#{session}",
                "type": "SESSION",
                "userId": user,
                "expires": int(now + c.random() * 30 * DAY),
            }


@published(
    "Post-amplify",
    Schema("id", indexes=(Index("postsByDate", "type", "createdAt"), Index("byBlog", "blogID"))),
    found=("A9 postsByDate",),
    traps={"A18": "one kind", "A7": "two questions", "I1 postsByDate": "type is no state"},
)
def post_amplify(c: Random, now: float) -> Items:
    """AWS Amplify: a model with the constant attribute type, to list all by date."""
    blogs = ids(c, 80)
    for post in ids(c, 1500):
        at = iso(when(c, now, 900))
        yield {
            "id": post,
            "type": "Post",
            "__typename": "Post",
            "blogID": c.choice(blogs),
            "title": some(c, 10, 60),
            "createdAt": at,
            "updatedAt": at,
        }


@published(
    "version-control-electro",
    Schema(
        "pk",
        "sk",
        indexes=tuple(Index(f"gsi{n}pk-gsi{n}sk-index", f"gsi{n}pk", f"gsi{n}sk") for n in (1, 2)),
    ),
    traps={
        "A18": "__edb_e__ names the kind",
        "A7": "two overloaded indexes",
        "E1": "issue numbers have four digits",
    },
    allowed={"I4": "keys join owner and name, of issues and comments in one index"},
)
def version_control_electro(c: Random, now: float) -> Items:
    """ElectroDB: examples/versionControl, its issues and their comments."""
    users = ids(c, 120, lambda c: code(c, 8))
    repos = [(c.choice(users), code(c, 9)) for _ in range(90)]
    for number in c.sample(range(1, 9000), 350):
        owner, repo = c.choice(repos)
        issue, user, status = f"{number:04}", c.choice(users), c.choice(["Open", "Closed"])
        at = iso(when(c, now, 600))
        key = f"$version-control#repoowner_{owner}#reponame_{repo}#issuenumber_{issue}"
        base = {"pk": key, "repoOwner": owner, "repoName": repo, "issueNumber": issue}
        yield base | {
            "sk": "$issuereview#issue_1",
            "gsi1pk": f"$version-control#username_{user}",
            "gsi1sk": f"$managed#issue_1#status_{status}#createdat_{at}".lower(),
            "gsi2pk": f"$version-control#repoowner_{owner}#reponame_{repo}",
            "gsi2sk": f"$activity#issue_1#status_{status}#createdat_{at}".lower(),
            "username": user,
            "status": status,
            "createdAt": at,
            "subject": some(c, 10, 50),
            "__edb_e__": "issue",
            "__edb_v__": "1",
        }
        for comment in ids(c, c.randint(0, 4)):
            who, to = c.choice(users), c.choice(users)
            yield base | {
                "sk": f"$issuereview#issue-comment_1#commentid_{comment}",
                "gsi1pk": f"$version-control#username_{who}",
                "gsi1sk": f"$conversations#issue-comment_1#repoowner_{owner}#reponame_{repo}",
                "gsi2pk": f"$version-control#replyto_{to}",
                "gsi2sk": f"$inbox#issue-comment_1#updatedat_{at}".lower(),
                "commentId": comment,
                "username": who,
                "replyTo": to,
                "body": some(c, 20, 200),
                "__edb_e__": "issue-comment",
                "__edb_v__": "1",
            }
