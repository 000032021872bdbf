"""The trainer: from trajectories to a better policy."""
