"""The choice of an effect by a run's options."""

from keyhop.dynamodb.rate_limit import Budget
from keyhop.each.effect import Effect, Work
from keyhop.jobs.task import TaskOptions


def effect_of(options: TaskOptions, work: Work) -> Effect:
    """Return the effect for a run's options. Raise CannotStart if the table does not permit it."""
    effect = options["effect"]
    if effect["kind"] in ("invoke", "queue", "machine"):
        from keyhop.each.deliver import delivery  # with boto3's clients of those services

        return delivery(effect, work)
    from keyhop.each.write import writing

    return writing(effect, work, Budget(options["max_write_rate"], options["max_write_units"]))
