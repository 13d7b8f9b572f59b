"""The functions of the state machine: one module for each state of the same name."""
