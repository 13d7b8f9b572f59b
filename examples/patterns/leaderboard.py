"""The best players of a level: python leaderboard.py TABLE (level S, player S; index by-score)."""

import sys

from keyhop.sharding.read_sharded import ReadSharded
from keyhop.sharding.table import ShardedTable


def best(table: ShardedTable) -> list[str]:
    """Return the best three of a thousand players, and the last one."""
    table.batch_write(
        {"level": "7", "player": f"player {n}", "score": n * 7919 % 1009} for n in range(1, 1001)
    )
    board = ReadSharded(table, index="by-score")
    players = [*board.top("7", 3), *board.top("7", 1, least=True)]
    return [f"{player['player']}: {player['score']}" for player in players]


if __name__ == "__main__":
    name = sys.argv[1]
    print(*best(ShardedTable(name, metadata=f"{name}-shards")), sep="\n")
