"""The tables, by what is looked at; importing a module declares its own."""
