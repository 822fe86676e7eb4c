"""A small training, as a user's would be. It writes checkpoints into a folder, each as a line of standard input says:
WAY NAME TEXT. It answers each line with one of its own, and ends with its input.
"""

import os
import shutil
import sys
import time


def write(path: str, text: str) -> None:
    with open(path, "w") as file:  # noqa: PTH123
        file.write(text)


def main(folder: str) -> None:
    os.makedirs(folder, exist_ok=True)  # noqa: PTH103
    for line in sys.stdin:
        way, name, text = (*line.split(), "")[:3]
        path, draft = f"{folder}/{name}", f"{folder}/draft"
        if way == "rename":
            write(draft, text)
            os.rename(draft, path)  # noqa: PTH104
        elif way == "in_place":
            write(path, text)
        elif way == "same_time":  # the same size, too
            was = os.stat(path)  # noqa: PTH116
            write(path, text)
            os.utime(path, ns=(was.st_atime_ns, was.st_mtime_ns))
        elif way == "shrink":
            os.truncate(path, 1)
        elif way == "delete":
            os.unlink(path)  # noqa: PTH108
        elif way == "link":
            os.symlink(text, path)  # noqa: PTH211
        elif way == "folder":
            os.mkdir(draft)  # noqa: PTH102
            write(f"{draft}/weights", text)
            os.rename(draft, path)  # noqa: PTH104
        elif way == "remove":
            shutil.rmtree(path)
        time.sleep(0.01)  # each has a time of its own
        print("done", flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
