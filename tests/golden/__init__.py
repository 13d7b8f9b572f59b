"""Golden files, which record the behaviour and the texts of Keyhop; see capture/."""
