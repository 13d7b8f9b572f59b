"""Tables that other engineers planted, who did not see the program."""
