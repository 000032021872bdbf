"""Mathematics with a Python interpreter: reason, run programs, answer in a box."""
