"""Tables with known faults, without any, and with what only looks like one; what a report says."""
