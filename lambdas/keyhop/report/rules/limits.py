"""The service's limits, and from where on a rule speaks. Pure."""

KB = 1024
GB = 2**30

COLLECTION_BYTES = 10 * GB
"""Of one partition key value on a table with an LSI, the LSIs counted [AWS: item collections]."""
NEAR_COLLECTION_BYTES = 8 * GB
ITEM_BYTES = 400 * KB
NEAR_ITEM_BYTES = 350 * KB
LARGE_ITEM_BYTES = 100 * KB

KEY_WRITES = 1000.0
KEY_READS = 3000.0
"""Units a second of one partition."""

PARTITION_MINUTE = 180_000
"""Of one key, as Contributor Insights counts it: 3 units for a write unit, 1 for a read unit."""

HALF = 0.5
HALF_PARTITION = HALF * PARTITION_MINUTE

HOUR = 3600.0
DAY = 86_400.0
YEAR = 365 * DAY

TTL_NORMAL_DAYS = 4
"""Expired items go within a few days [AWS: time to live]."""

DATED = 0.95
"""Share of keys that are only a date, from which on the date is the key."""
