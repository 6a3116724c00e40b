"""Decisions about one job: pure functions from what is seen to what ought to be done."""
