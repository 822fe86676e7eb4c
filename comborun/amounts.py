"""How much there is of something: units of memory, and a number with its noun as every sentence has it."""

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
"""bytes"""


def several(count: int, noun: str, many: str = "") -> str:
    """`1 session`, `3 sessions`; `many` is the plural of a noun that takes more than an s."""
    return f"{count} {noun if count == 1 else many or f'{noun}s'}"
