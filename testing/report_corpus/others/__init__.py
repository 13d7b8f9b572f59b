"""Tables declared by people who knew the meaning of each rule, and not how the report finds it."""
