"""What follows a stream: the protocol (pure), and what carries it out."""
