"""What a `combo` does at its first grid, question to a host and report, done once for all forks of `quick_combo`."""

from __future__ import annotations

import gc
import json
import sys
import zlib
from pathlib import Path

from bytecode import compiled_library

from comborun.grid.file import parse_grid
from comborun.host import publish
from comborun.remote import program
from comborun.remote.program import packed
from comborun.reporter.pages.page import TEMPLATES, _environment

for verb in ("facts", "publish", "amend", "reread", "runs", "logs", "fetch", "doctor", "sync"):
    packed(verb)
parse_grid("policies: [p]\nenvironments: [e]\nepisodes: 1\ncommand: run {output_dir} {episodes}\n", Path("grid.yaml"))
for template in TEMPLATES.glob("*.j2"):
    _environment().get_template(template.name)
COMPILED = f"""
def fill(self, entries, fill=Staging.fill):
    fill(self, entries)
    __import__("shutil").copytree({str(compiled_library())!r}, self.folder + "/lib", dirs_exist_ok=True)
Staging.fill = fill
"""
exec(COMPILED, publish.__dict__)
sent = json.loads(zlib.decompress(packed("publish")))
sent["comborun.host.publish"][1] += COMPILED
publishing = zlib.compress(json.dumps(sent).encode())
program.packed = lambda verb: publishing if verb == "publish" else packed(verb)
gc.freeze()  # a fork looks for no garbage in what it never changes
sys.path.remove(str(Path(__file__).parent))
