"""One file each: how the members of a gang find each other, and when the job is done."""
