"""What a `combo` does at its first grid, question to a host and report, done once for all forks of `quick_combo`."""

from __future__ import annotations

import gc
import inspect
import json
import sys
import zlib
from pathlib import Path

from bytecode import compiled_library, share

from comborun.grid.file import parse_grid
from comborun.host.verbs import publish
from comborun.remote import library
from comborun.remote.library import packed
from comborun.reporter.pages.page import TEMPLATES, _environment

for verb in ("facts", "publish", "amend", "reread", "runs", "logs", "fetch", "doctor", "sync"):
    packed(verb)
parse_grid("policies: [p]\nenvironments: [e]\nepisodes: 1\ncommand: run {output_dir} {episodes}\n", Path("grid.yaml"))
for template in TEMPLATES.glob("*.j2"):
    _environment().get_template(template.name)
COMPILED = f"""
{inspect.getsource(share)}
def fill(self, entries, fill=Staging.fill):
    fill(self, entries)
    library, texts = self.folder + "/lib", shutil.ignore_patterns("*.py", "*.sh")
    if not os.path.exists(library + "/comborun_host/__pycache__"):
        shutil.copytree({str(compiled_library())!r}, library, False, texts, share, dirs_exist_ok=True)
Staging.fill = fill
"""
exec(COMPILED, publish.__dict__)
sent = json.loads(zlib.decompress(packed("publish")))
sent["comborun.host.verbs.publish"][1] += COMPILED
publishing = zlib.compress(json.dumps(sent).encode())
library.packed = lambda verb: publishing if verb == "publish" else packed(verb)
gc.freeze()  # a fork looks for no garbage in what it never changes
sys.path.remove(str(Path(__file__).parent))
