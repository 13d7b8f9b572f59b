"""DynamoDB in memory, its network and many processes, by one seed: a run is the same anywhere."""
