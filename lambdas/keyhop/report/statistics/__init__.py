"""What samples say of the whole, with intervals. Pure; chance comes in as a random.Random."""
