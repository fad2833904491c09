"""Plugins as somebody else writes them: a tool in three languages, and a pack that answers without us."""

from __future__ import annotations

from pathlib import Path

from tests.loop.source_files import write_program

# A tool in three languages.
GREET = {
    "bash": """\
#!/usr/bin/env bash
case "$1" in
  --schema) echo '{"name":"greet","description":"Greets","input_schema":{"type":"object","properties":{}}}' ;;
  --describe) echo "Greets" ;;
  --exec) read -r input; echo "hello from bash: $input"; echo "and stderr" >&2; exit 3 ;;
esac
""",
    "python3": """\
#!/usr/bin/env python3
import json, sys
if sys.argv[1] == "--schema":
    print(json.dumps({"name": "greet", "description": "Greets", "input_schema": {"type": "object"}}))
elif sys.argv[1] == "--exec":
    print("hello from python3:", json.dumps(json.load(sys.stdin)), flush=True)
    print("and stderr", file=sys.stderr)
    sys.exit(3)
""",
    "node": """\
#!/usr/bin/env node
const flag = process.argv[2];
if (flag === "--schema") {
  console.log(JSON.stringify({name: "greet", description: "Greets", input_schema: {type: "object"}}));
} else if (flag === "--exec") {
  const input = JSON.parse(require("fs").readFileSync(0, "utf8"));
  console.log("hello from node:", JSON.stringify(input));
  console.error("and stderr");
  process.exit(3);
}
""",
}
_PROVIDER = """\
#!/usr/bin/env python3
import json, os, sys
flag = sys.argv[1] if len(sys.argv) > 1 else ""
if flag == "--ready":
    sys.exit(0)
if flag == "--defaults":
    print("model=echo-1")
elif flag == "":
    payload = json.load(sys.stdin)
    print(json.dumps({"said": payload["messages"][-1], "model": os.environ["HARNESS_MODEL"]}))
"""
_MESSAGES = """\
#!/usr/bin/env python3
import json, os, pathlib, sys
payload = json.load(sys.stdin)
files = sorted(pathlib.Path(os.environ["HARNESS_SESSION"], "messages").iterdir())
payload["messages"] = [path.read_text().split("---\\n", 2)[2].strip() for path in files]
print(json.dumps(payload))
"""
_SAVE = """\
#!/usr/bin/env python3
import json, sys
answer = json.load(sys.stdin)
print(json.dumps({"next_state": "done", "output": "%s: %s" % (answer["model"], answer["said"])}))
"""


def write_echo_pack(source: Path) -> None:
    """Write the pack of a provider `echo`, which repeats what was said last."""
    pack = source / "plugins" / "echo"
    write_program(pack / "providers" / "echo", _PROVIDER)
    write_program(pack / "hooks.d" / "assemble" / "10-messages", _MESSAGES)
    write_program(pack / "hooks.d" / "receive" / "10-save", _SAVE)
