"""Mathematics with a Python tool: reason, run programs, answer in a box, as in SimpleTIR."""
