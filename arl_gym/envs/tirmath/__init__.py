"""Mathematics with tools: the model reasons, runs Python in a sandbox, and puts its answer in a box."""
