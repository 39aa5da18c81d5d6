"""The tables of the README that are made from the code. `python -m tests.readme` writes them anew."""
