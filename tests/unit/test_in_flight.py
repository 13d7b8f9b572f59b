"""Check how many pages are read at once, in a simulated process, table and clock."""

import pytest
from keyhop.dynamodb.rate_limit import Budget
from keyhop.scan.in_flight import FIRST, MOST, InFlight

from testing.in_flight_model import Model, always, steps
from testing.marks import prove

CPU = 0.0005


@pytest.mark.parametrize("latency", [0.001, prove(0.005), prove(0.05), 0.2])
@pytest.mark.parametrize("cpu", [0.0002, 0.001])
def test_nine_tenths_of_the_limit_of_cpu_and_distance_are_used(latency: float, cpu: float) -> None:
    """The mean from the fifth second on counts. No fixed number of lanes would read more."""
    model = Model(InFlight(), always(latency), always(cpu)).run(20.0)
    best = min(1 / cpu, MOST / (latency * (1 + model.jitter / 2) + cpu))
    assert model.pages_a_second(5.0, 20.0) >= 0.9 * best


@pytest.mark.parametrize("latency", [0.001, prove(0.005), prove(0.05), 0.2])
def test_nine_tenths_of_the_capacity_of_a_table_with_a_queue_are_used(latency: float) -> None:
    model = Model(InFlight(), always(latency), serves=always(1_000.0)).run(20.0)
    assert model.pages_a_second(5.0, 20.0) >= 0.9 * 1_000.0


def test_a_table_far_away_has_a_hundred_lanes_after_two_seconds() -> None:
    model = Model(InFlight(), always(0.05), always(0.0002)).run(3.0)
    assert max(model.lanes_between(0.0, 0.2)) == FIRST
    assert min(model.lanes_between(2.0, 3.0)) >= 100


@pytest.mark.parametrize("seed", [1, prove(2), prove(3)])
@pytest.mark.parametrize("jitter", [0.2, 1.0])
def test_the_number_of_lanes_stays_near_the_best_without_swings(jitter: float, seed: int) -> None:
    """The maximum is 1,000 pages a second, at a distance of 20 ms."""
    model = Model(InFlight(), always(0.02), always(0.001), jitter=jitter, seed=seed).run(40.0)
    needed = 1_000.0 * 0.02 * (1 + jitter / 2)
    lanes = model.lanes_between(5.0, 40.0)
    assert 0.6 * needed <= min(lanes)
    assert max(lanes) <= 2.5 * needed


@pytest.mark.parametrize("maximum", [1, 3, 8, 20])
def test_the_number_of_lanes_never_exceeds_its_maximum(maximum: int) -> None:
    model = Model(InFlight(most=maximum), always(0.05)).run(10.0)
    assert max(model.lanes_between(0.0, 10.0)) == maximum
    assert model.pages_a_second(2.0, 10.0) >= 0.93 * maximum / (0.05 * 1.1)


def check_change(model: Model, moment: float, before: float, after: float, within: float) -> None:
    """Check for nine tenths of the best rate before the moment, and of another one after it."""
    model.run(moment + within + 10.0)
    assert model.pages_a_second(moment - 5.0, moment) >= 0.9 * before
    assert model.pages_a_second(moment + within, moment + within + 10.0) >= 0.9 * after


def test_it_follows_when_the_table_is_farther_away() -> None:
    model = Model(InFlight(), steps((0.0, 0.005), (15.0, 0.05)), always(CPU))
    check_change(model, 15.0, before=2_000.0, after=2_000.0, within=4.0)
    assert min(model.lanes_between(20.0, 29.0)) >= 80


def test_it_follows_when_the_table_is_near_again() -> None:
    model = Model(InFlight(), steps((0.0, 0.05), (15.0, 0.005)), always(CPU))
    check_change(model, 15.0, before=2_000.0, after=2_000.0, within=2.0)
    assert max(model.lanes_between(25.0, 27.0)) <= 40


def test_it_follows_when_the_cpu_gets_slower_and_faster() -> None:
    slow = Model(InFlight(), always(0.02), steps((0.0, 0.0003), (15.0, 0.0012)))
    check_change(slow, 15.0, before=3_333.0, after=833.0, within=3.0)
    assert max(slow.lanes_between(22.0, 28.0)) <= 40
    fast = Model(InFlight(), always(0.02), steps((0.0, 0.0012), (15.0, 0.0003)))
    check_change(fast, 15.0, before=833.0, after=3_333.0, within=4.0)


def test_it_follows_the_capacity_of_a_table() -> None:
    model = Model(InFlight(), always(0.02), serves=steps((0.0, 500.0), (15.0, 3_000.0)))
    check_change(model, 15.0, before=500.0, after=3_000.0, within=4.0)


def test_a_busy_cpu_gets_no_more_lanes() -> None:
    """This holds even if they seem to bring more by chance."""
    flight = InFlight(lambda: now)
    now = 0.0
    flight.begin(now, MOST)
    for _ in range(40):
        for _ in range(100):
            flight.page(now, now + 0.01 / (1 + flight.lanes))  # each lane makes all others faster
        now += 1.0
        flight.look(now)
    assert flight.lanes <= FIRST


def test_most_lanes_that_wait_for_an_allowed_rate_are_given_up() -> None:
    """200 read units a second are 400 pages: 2.2 in flight at a distance of 5 ms, with jitter."""
    model = Model(InFlight(), always(0.005), budget=Budget(max_rate=200.0)).run(30.0)
    assert max(model.lanes_between(3.0, 30.0)) <= 5
    assert model.pages_a_second(3.0, 30.0) >= 0.95 * 400
    assert model.pages_a_second(0.0, 30.0) <= 400 + FIRST


@pytest.mark.parametrize("latency", [0.005, prove(0.05), 0.2])
@pytest.mark.parametrize("rate", [10.0, prove(200.0), prove(500.0)])
def test_an_allowed_rate_is_used_at_any_distance(rate: float, latency: float) -> None:
    model = Model(InFlight(), always(latency), budget=Budget(max_rate=rate)).run(40.0)
    assert 0.95 <= model.pages_a_second(8.0, 40.0) * 0.5 / rate <= 1.01


def test_a_rate_at_a_greater_distance_gets_more_lanes() -> None:
    far = steps((0.0, 0.005), (15.0, 0.05))
    model = Model(InFlight(), far, budget=Budget(max_rate=200.0)).run(30.0)
    assert model.pages_a_second(17.0, 30.0) >= 0.95 * 400


LOADS = [
    (50.0, 0.5, 0.003),
    (50.0, 0.5, 0.2),
    prove(50.0, 8.0, 0.05),
    (200.0, 0.5, 0.05),
    prove(200.0, 8.0, 0.2),
    (1_000.0, 2.0, 0.05),
    prove(1_000.0, 8.0, 0.2),
    prove(5_000.0, 8.0, 0.003),
    prove(5_000.0, 8.0, 0.05),
    (5_000.0, 8.0, 0.2),
]


@pytest.mark.parametrize(("gives", "units", "latency"), LOADS)
def test_nine_tenths_of_a_throttling_table_are_used_with_few_throttles(
    gives: float, units: float, latency: float
) -> None:
    """The table gives `gives` read units a second, and saves up one second of them."""
    model = Model(InFlight(), always(latency), always(0.0002), gives=always(gives), units=units)
    model.run(40.0)
    assert model.pages_a_second(10.0, 40.0) * units >= 0.9 * gives
    assert model.throttled_share(10.0, 40.0) <= 0.02


@pytest.mark.parametrize(
    "gives", [50.0, prove(100.0), prove(200.0), 500.0, prove(1_000.0), 5_000.0]
)
@pytest.mark.parametrize("item", [0.5, 2.5])
@pytest.mark.parametrize("latency", [0.005, prove(0.05)])
def test_nine_tenths_of_a_throttling_table_are_used_with_large_pages(
    gives: float, item: float, latency: float
) -> None:
    """Pages have up to 1 MB, in blocks of 4 KB or in items of 20 KB, so few pages are sent."""
    for seed in (1, 2):
        model = Model(InFlight(), always(latency), always(0.0002), gives=always(gives), seed=seed)
        model.units, model.item = 128.0, item
        model.run(40.0)
        assert model.units_a_second(10.0, 40.0) >= 0.9 * gives
        assert model.throttled_share(10.0, 40.0) <= 0.02


@pytest.mark.parametrize("units", [0.5, 128.0])
@pytest.mark.parametrize("gives", [50.0, prove(200.0)])
def test_a_table_that_gives_three_times_as_much_is_used_soon(gives: float, units: float) -> None:
    more = steps((0.0, gives), (20.0, 3 * gives))
    model = Model(InFlight(), always(0.01), always(0.0002), gives=more, units=units).run(55.0)
    assert model.units_a_second(40.0, 55.0) >= 0.9 * 3 * gives


def test_a_table_that_gives_more_is_used_soon() -> None:
    gives = steps((0.0, 200.0), (20.0, 1_000.0))
    model = Model(InFlight(), always(0.01), always(0.0002), gives=gives, units=1.0).run(60.0)
    assert model.pages_a_second(45.0, 60.0) >= 0.9 * 1_000.0


def test_too_few_segments_for_more_lanes_lead_to_no_conclusion() -> None:
    """Three lanes read the last three segments of a run. The next run begins with eight lanes."""
    flight = InFlight()
    assert flight.begin(0.0, 3) == 3
    assert flight.begin(1.0, MOST) == FIRST


def test_a_trial_without_enough_segments_leads_to_no_conclusion() -> None:
    """A slice may begin with as few segments as there were lanes before the trial."""

    def read_for_a_second(flight: InFlight, at: float) -> int:
        for _ in range(200):
            flight.page(at, at + 0.01)
        return flight.look(at + 1.0)

    flight = InFlight()
    flight.begin(0.0, 100)
    trial_lanes = read_for_a_second(flight, 0.0)
    assert trial_lanes > FIRST
    assert flight.begin(1.0, FIRST) == FIRST
    assert read_for_a_second(flight, 1.0) <= FIRST
    assert flight.begin(2.0, 100) >= 1
