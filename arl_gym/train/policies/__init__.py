"""Policies that produce tokens."""
