"""Tables with known faults, without faults, and with apparent faults, to measure the report."""
