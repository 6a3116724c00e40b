"""One node: pods bound to it become processes, and what becomes of them is reported."""
