"""Decisions about the whole machine: who is seated where, and why somebody waits. Pure."""
