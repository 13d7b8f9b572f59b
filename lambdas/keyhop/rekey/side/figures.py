"""Names of the figures that the side table holds (its rows `told`): JSON each, `at` seconds since
1970. Those of the copy, `backfill`, `throttle` and `unmappable`, are in pace.py. Pure.

    destination  {"identity": "" before it is made, "adopted": whether it was there, and empty}
    copied       what became of each feature (rows of likeness.py); noted when all is put
    ttl          {"attribute": ...} that items of the source expired by; null if they did not
    stream       {"turned_on": true, "arn": "" before that}: only if `create` turned it on
    started      {"at"}
    deployment   {"stack"}: whose function follows the streams
    lag.D        {"seconds", "at"}; D is forward or reverse
    verify       run, at, finished, share (1: of everything), items, turns (Control.turns when it
                 began), what was found (compare/outcome.py), left: of that, what was not repaired
    failures     {"count"}: messages of the failure queue (seen there, and not told)
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
