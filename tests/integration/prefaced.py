"""The host program of this machine with some Python in front of it, for tests that make a call fail or watch it."""

from __future__ import annotations

from typing import Any

from comborun.remote.transport import Completed, LocalTransport


class Prefaced(LocalTransport):
    """Only what is sent packed has it: the program that lies in a run is as it is."""

    host = "far"

    def __init__(self, preface: str) -> None:
        self.preface = preface

    def run(self, script: str, *args: str, **options: Any) -> Completed:
        assert args[0].lstrip().startswith("import "), "the first argument is the loader"
        return super().run(script, self.preface + args[0], *args[1:], **options)
