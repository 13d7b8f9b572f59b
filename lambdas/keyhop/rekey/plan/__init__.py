"""`plan`: a sample, a trial of the template on it, what it would cost, the obstacles."""
