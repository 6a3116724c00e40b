"""The Job Center's port: a door, pages for people, and the way to the programs behind it."""
