"""The service's limits, and the thresholds of rules. Pure."""

KB = 1024
GB = 2**30

COLLECTION_BYTES = 10 * GB
"""The limit of one partition key in a table with LSIs, LSIs included [AWS: item collections]."""
NEAR_COLLECTION_BYTES = 8 * GB
ITEM_BYTES = 400 * KB
NEAR_ITEM_BYTES = 350 * KB
LARGE_ITEM_BYTES = 100 * KB

KEY_WRITES = 1000.0
KEY_READS = 3000.0
"""The units a second that one partition serves."""

PARTITION_MINUTE = 180_000
"""The units of one key a minute in Contributor Insights: 3 a write unit, 1 a read unit."""

HALF = 0.5
HALF_PARTITION = HALF * PARTITION_MINUTE

HOUR = 3600.0
DAY = 86_400.0
YEAR = 365 * DAY

TTL_NORMAL_DAYS = 4
"""The service deletes expired items within a few days [AWS: time to live]."""

DATED = 0.95
"""The share of keys that are only a date at which the date counts as the key."""
