"""Sokoban: push every box onto a target."""
