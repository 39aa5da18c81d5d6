"""Write the tables of the README anew."""

from .tables import README, written

README.write_text(written(README.read_text("utf-8")), "utf-8")
