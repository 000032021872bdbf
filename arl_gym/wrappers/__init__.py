"""The agent layer around any environment of the contract: one wrapper a file."""
