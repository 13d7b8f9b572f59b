"""Tables declared from the rules' meanings alone, without sight of how the report finds them."""
