"""Agents without torch: types, rollout, policies, evaluation."""
