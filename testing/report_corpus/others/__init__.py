"""Tables declared from the rules' meanings alone, without sight of how the report finds them.

The rules were improved on the tables of `first`. Those of `second` are closed: no report has been
run on them. Add it to PARTS when the rules are finished, and publish what is found.
"""
