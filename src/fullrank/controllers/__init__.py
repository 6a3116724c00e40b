"""Loops: look, decide, act."""
