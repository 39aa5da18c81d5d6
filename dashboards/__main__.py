"""Write every board."""

from pathlib import Path

from . import BOARDS

for board in BOARDS:
    (Path(__file__).parent / f"{board.uid}.json").write_text(board.text(), "utf-8")
