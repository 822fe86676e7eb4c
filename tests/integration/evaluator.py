"""A small evaluation program, as a user's would be: an episode after the other, a record for each, flushed.

`--pace` seconds pass in an episode; the last one begins when the file `--gate` is there, and no episode takes time from
then on; `--fail` says how it goes wrong: exit3, half, holes or misnamed. The outcome of an episode depends on policy,
environment and seed alone. The suite starts it a thousand times, so it imports little.
"""

import _random
import os
import sys
import time
from hashlib import sha512

KNOWN = {"policy", "env", "episodes", "first-episode", "seed", "output-dir", "pace", "gate", "fail"}


def options() -> dict[str, str]:
    told = {name.removeprefix("--"): value for name, value in zip(sys.argv[1::2], sys.argv[2::2], strict=True)}
    for name in told.keys() - KNOWN:
        sys.exit(f"evaluator.py: error: unrecognized arguments: --{name} {told[name]}")
    return told


def main() -> None:
    told = options()
    policy, fail, gate = told["policy"], told.get("fail"), told.get("gate")
    first, count, seed = (int(told.get(name, "0")) for name in ("first-episode", "episodes", "seed"))
    if fail == "exit3":
        sys.exit(3)
    stop = first + (count // 2 if fail == "half" else count)
    with open(f"{told['output-dir']}/episodes.jsonl", "a") as file:  # noqa: PTH123
        for episode in range(first, stop):
            while gate and episode == stop - 1 and not os.path.exists(gate):  # noqa: PTH110
                time.sleep(0.02)
            time.sleep(0 if gate and os.path.exists(gate) else float(told.get("pace", "0")))  # noqa: PTH110
            if fail == "holes" and count > 3 and episode % 3 == 1:
                continue
            drawn = f"{policy} {told['env']} {seed + episode}".encode()
            chance = _random.Random(int.from_bytes(drawn + sha512(drawn).digest(), "big")).random()
            success = chance < (0.9 if policy == "good" else 0.3)
            file.write(
                f'{{"policy": "{"another" if fail == "misnamed" else policy}", "environment": "{told["env"]}", '
                f'"episode": {episode}, "seed": {seed + episode}, "success": {str(success).lower()}, '
                f'"score": {round(chance, 6)}}}\n'
            )
            file.flush()
            print(f"episode {episode}: {success}", flush=True)


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        print("interrupted", flush=True)
        sys.exit(130)
