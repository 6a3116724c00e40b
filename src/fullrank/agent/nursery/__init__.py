"""A program of its own, of the standard library alone: it is started once and forks a small parent for each attempt.

Parents outlive the server. Whoever asks for one sends, with the attempt's folder, the write end of the FIFO `alive` in
it, so that this FIFO has a writer exactly as long as somebody runs the attempt or still may: end of file means that it
is over, or never was. A parent leaves in the folder

    started.json   before the container's program runs: it was started, and is never started again
    exit.json      how it ended, in one rename

and reads from the FIFO `control`: `T` asks the container's program to end (SIGTERM), `K` kills everything. The parent
of a process runs it itself (`parent`); that of an engine's container has the engine run it (`keeper`).

The modules here import each other relatively and nothing of the rest of the package, whose imports would cost memory in
every parent.
"""
