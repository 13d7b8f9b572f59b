"""What each rule looks for, and why it matters: a few sentences that the page links to.

The page docs/reference/report-rules.md has the thresholds.
"""

from collections.abc import Mapping
from typing import Final

MEANINGS: Final[Mapping[str, str]] = {
    "A1": (
        "The partition keys are numbers that are counted up. Such ids need a counter that every "
        "writer has to wait for, and anybody can guess the next one."
    ),
    "A2": (
        "The table holds several kinds of items, but the partition keys do not say which kind, as "
        "USER#17 does. Ids of two kinds can then be equal, and a reader cannot tell them apart."
    ),
    "A3": (
        "The partition key is a date, so all writes of a day go to one key, and one partition "
        "limits them."
    ),
    "A4": "The table is read by Scan requests, which cost as much as the whole table is large.",
    "A5": (
        "A filter discards many of the items that a request has read. DynamoDB charges for the "
        "discarded items too."
    ),
    "A6": (
        "The table has a local secondary index. Each item collection is then limited to 10 GB, "
        "and no collection can be split over partitions."
    ),
    "A7": "There are many global secondary indexes. Every write is paid for in each of them.",
    "A8": (
        "Many writes change a number in one item. One item accepts at most 1,000 write units a "
        "second."
    ),
    "A9": (
        "Much of an index has the same partition key. Writes to that key are limited by one "
        "partition, and when the index throttles, the table's writes are throttled too."
    ),
    "A10": (
        "An item is read from a global index directly after it was written. Such a read is "
        "eventually consistent and may return the old item."
    ),
    "A11": (
        "A status is changed without a condition. Two writers can then overwrite each other's "
        "change, or return an item to an earlier status."
    ),
    "A12": "Nearly all writes are transactions, which cost twice as much as plain writes.",
    "A13": (
        "Some items are large. Each read or write pays for the whole item, and 400 KB is the limit."
    ),
    "A14": (
        "The code does not look at the items that a batch request has left unprocessed, so these "
        "writes or reads are lost."
    ),
    "A15": (
        "Item collections grow without a limit. Queries of them become slower and cost more, and "
        "with a local secondary index writes fail at 10 GB."
    ),
    "A16": (
        "Time to live is on, but expired items remain, or the attribute holds values that "
        "DynamoDB ignores."
    ),
    "A17": "Nearly all reads are strongly consistent, which costs twice as much.",
    "A18": (
        "The table holds several kinds of items, and no attribute names the kind. Exports and "
        "streams then have to guess it from the keys."
    ),
    "A19": (
        "There are so few partition keys that a few partitions have to serve the whole load, or "
        "hold most of the data."
    ),
    "H1": (
        "One partition key receives more than half of the load that a partition can serve, or "
        "was throttled."
    ),
    "H2": (
        "One collection receives its writes at its newest sort key. DynamoDB can split a hot "
        "collection, but all new writes still go to one side of the split."
    ),
    "H3": "A global index was throttled. The writes to the table are then throttled as well.",
    "H4": (
        "Requests were throttled by the capacity of the table or the account, and not because of "
        "single keys. Other keys would not help."
    ),
    "H5": "The table is not prepared for the expected peak, so a sudden start is throttled.",
    "H6": (
        "Items are written in the order of the partition keys' hashes, as after a scan. One "
        "partition after the other then receives the whole load."
    ),
    "H7": "A few partitions receive most of the writes of the stream.",
    "I1": (
        "An index holds nearly all items, although its queries need only some. An item without "
        "the index's key attribute costs nothing in the index."
    ),
    "I2": "An index copies all attributes of large items, so every write pays for them twice.",
    "I3": "The indexes take more write units than the table itself.",
    "I4": (
        "An index key attribute only joins other attributes, as STATUS#DATE does. An index can "
        "have several key attributes, which saves writes, storage and code."
    ),
    "E1": (
        "Sort keys hold numbers as text of different widths, so 10 is sorted before 9. Padded "
        "numbers are sorted correctly."
    ),
    "E2": (
        "Items that reserve a unique value have no item that they belong to, so the value remains "
        "taken."
    ),
}
"""By the id of a rule."""

THRESHOLDS: Final = "keyhop help docs/reference/report-rules.md"
"""The command that prints the thresholds of each rule."""
