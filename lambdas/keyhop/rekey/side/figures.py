"""The names of the figures that the side table holds. Pure.

Each is JSON, with `at` in seconds since 1970. The figures of the copy, `backfill`, `throttle` and
`unmappable`, are described in pace.py.

    destination  {"identity": "" before creation, "adopted": whether it existed, and was empty}
    copied       the result for each feature (rows of likeness.py), once all settings are copied
    ttl          {"attribute": ...} by which items of the source expired; null if they did not
    stream       {"turned_on": true, "arn": "" before that}: only if `create` turned it on
    started      {"at"}
    deployment   {"stack"}: the one whose function follows the streams
    lag.D        {"seconds", "at"}; D is forward or reverse
    verify       run, at, finished, share (1: of everything), items, turns (Control.turns when it
                 began), the counts (compare/outcome.py), left: differences that were not repaired
    failures     {"count"}: messages of the failure queue (read from the queue, not stored)
    marker keys S  keys by the shards of the stream of S, source or destination
    turned       {"at", "serving"}: the last change of the serving table
    ending       {"how": complete or cancel, "at"}
    export       {"token": of the request, "arn": empty before it was answered}
"""

DESTINATION, COPIED, TTL, STREAM = "destination", "copied", "ttl", "stream"
STARTED, DEPLOYMENT = "started", "deployment"
LAG, VERIFIED, FAILED = "lag", "verify", "failures"
MARKER_KEYS, TURNED = "marker keys", "turned"
ENDING, EXPORT = "ending", "export"
