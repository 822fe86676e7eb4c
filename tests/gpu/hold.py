"""The training job of the tests on a real GPU: takes so many MiB of the first device and holds them.

python hold.py MIB FILE        until FILE is there; prints one line when it has them
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import torch

held = torch.empty(int(sys.argv[1]) << 20, dtype=torch.uint8, device="cuda").fill_(1)
print(f"{held.numel() >> 20} MiB held", flush=True)
while not Path(sys.argv[2]).exists():
    time.sleep(0.1)
