"""`front RUN [VERB] [ARGUMENT]...`: what a person types as `bash run_parallel.sh [VERB]`.

Without a verb the run starts or resumes. `resume` lets a run that is held go on, and starts it.
"""

from __future__ import annotations

from comborun.host import start

_STEERED = frozenset(("pause", "drain", "slots", "retry", "notify"))


def main(arguments: list[str]) -> int:
    run, verb, words = arguments[:1], "".join(arguments[1:2]), arguments[2:]
    if verb == "stop":
        from comborun.host import stop

        return stop.main([*run, *words])
    if verb in _STEERED or verb == "resume":
        from comborun.host import control

        code = control.main([*run, verb, *words])
        return code if code or verb != "resume" else start.main([*run, *words])
    return start.main(arguments)
