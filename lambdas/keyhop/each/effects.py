"""From a run's options to what it does for each key."""

from keyhop.dynamodb.rate_limit import Budget
from keyhop.each.effect import Effect, Work
from keyhop.jobs.task import TaskOptions


def effect_of(options: TaskOptions, work: Work) -> Effect:
    """Raises CannotStart for what cannot be done to this table."""
    effect = options["effect"]
    if effect["kind"] in ("invoke", "queue", "machine"):
        from keyhop.each.deliver import delivery  # with boto3's clients of those services

        return delivery(effect, work)
    from keyhop.each.write import writing

    return writing(effect, work, Budget(options["max_write_rate"], options["max_write_units"]))
