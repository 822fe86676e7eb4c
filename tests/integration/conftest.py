"""Fixtures that several test modules share."""

from box import any_box, box, screen_box

__all__ = ["any_box", "box", "screen_box"]
