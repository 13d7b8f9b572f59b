"""Check how fast items are moved while others use their target."""

from keyhop.sharding.key.policy import FIRST_UNITS, LEAST_UNITS, MOST_UNITS, Pace


def move(pace: Pace, now: float, until: float, room: float) -> tuple[float, int, int]:
    """Move items between two partitions that accept `room` units a second."""
    accepted = refused = 0
    budget, filled = room, now
    while now < until:
        now += max(pace.turn(now), 0.001)
        budget, filled = min(room, budget + (now - filled) * room), now
        if budget >= 4:
            budget -= 4
            accepted += 1
            pace.note_moved(4.0)
        else:
            refused += 1
            pace.throttled(now)
    return now, accepted, refused


def test_the_pace_begins_low_and_never_uses_all_of_a_partition() -> None:
    pace = Pace(1)
    _, accepted, refused = move(pace, 0.0, 10.0, room=1e9)
    assert FIRST_UNITS / 4 * 10 <= accepted <= MOST_UNITS / 4 * 10
    move(pace, 10.0, 200.0, room=1e9)
    assert (pace.rate, refused) == (MOST_UNITS, 0)
    assert Pace(3).rate == 3 * FIRST_UNITS


def test_throttles_lower_the_pace_at_once_and_it_recovers_slowly() -> None:
    pace = Pace(1)
    now, _, _ = move(pace, 0.0, 60.0, room=1e9)
    now, accepted, _ = move(pace, now, now + 20.0, room=0.0)
    assert (pace.rate, accepted) == (LEAST_UNITS, 0)
    now, accepted, _ = move(pace, now, now + 30.0, room=1e9)
    assert LEAST_UNITS < pace.rate < MOST_UNITS
    assert accepted > 100


def test_the_pace_uses_the_available_room() -> None:
    pace = Pace(1)
    now, _, _ = move(pace, 0.0, 60.0, room=100.0)
    _, accepted, refused = move(pace, now, now + 300.0, room=100.0)
    assert 0.6 * 100 / 4 * 300 < accepted <= 100 / 4 * 301
    assert refused < accepted / 20


def test_movers_that_are_refused_together_count_once() -> None:
    pace = Pace(1)
    for _ in range(8):
        pace.throttled(0.0)
    assert pace.rate == FIRST_UNITS / 2
