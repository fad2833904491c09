"""The same plugins in three languages: what each kind of the protocol reads and prints, and no more."""

from __future__ import annotations

GATE = {
    "bash": """\
#!/usr/bin/env bash
call=$(cat)
case $call in
  *forbidden*) echo "${call%\\}},\\"decision\\":\\"deny\\",\\"reason\\":\\"no, says bash\\"}" ;;
  *) echo "$call" ;;
esac
""",
    "python3": """\
#!/usr/bin/env python3
import json, sys
call = json.load(sys.stdin)
if "forbidden" in json.dumps(call["input"]):
    call |= {"decision": "deny", "reason": "no, says python3"}
print(json.dumps(call))
""",
    "node": """\
#!/usr/bin/env node
const call = JSON.parse(require("fs").readFileSync(0, "utf8"));
if (JSON.stringify(call.input).includes("forbidden")) {
  Object.assign(call, {decision: "deny", reason: "no, says node"});
}
console.log(JSON.stringify(call));
""",
}
# Writes its stage and the keys of what it reads into the file SEEN, and passes the same on.
HOOK = {
    "bash": """\
#!/usr/bin/env bash
input=$(cat)
keys=$(echo "$input" | grep -o '"[a-z_]*":' | head -1)
echo "$HARNESS_STAGE $keys" >> "$SEEN"
echo "$input"
""",
    "python3": """\
#!/usr/bin/env python3
import json, os, sys
payload = json.load(sys.stdin)
with open(os.environ["SEEN"], "a") as seen:
    print(os.environ["HARNESS_STAGE"], *list(payload)[:1], file=seen)
json.dump(payload, sys.stdout, indent=2)
""",
    "node": """\
#!/usr/bin/env node
const fs = require("fs");
const payload = JSON.parse(fs.readFileSync(0, "utf8"));
fs.appendFileSync(process.env.SEEN, `${process.env.HARNESS_STAGE} ${Object.keys(payload)[0] || ""}\\n`);
process.stdout.write(JSON.stringify(payload));
""",
}
PROVIDER = {
    "bash": """\
#!/usr/bin/env bash
case "$1" in
  --describe) echo "Repeats" ;;
  --ready) exit 0 ;;
  --defaults) echo "model=echo-1" ;;
  --env) echo "ECHO_KEY  none is needed" ;;
  *)
    payload=$(cat)
    said=${payload#*\\"messages\\":[\\"}
    echo "{\\"said\\":\\"$HARNESS_MODEL: ${said%%\\"*}\\"}"
    ;;
esac
""",
    "python3": """\
#!/usr/bin/env python3
import json, os, sys
flag = sys.argv[1] if len(sys.argv) > 1 else ""
lines = {
    "--describe": "Repeats", "--ready": "", "--defaults": "model=echo-1", "--env": "ECHO_KEY  none is needed",
}
if flag in lines:
    print(lines[flag])
else:
    payload = json.load(sys.stdin)
    print(json.dumps({"said": os.environ["HARNESS_MODEL"] + ": " + payload["messages"][0]}))
""",
    "node": """\
#!/usr/bin/env node
const lines = {
  "--describe": "Repeats", "--ready": "", "--defaults": "model=echo-1", "--env": "ECHO_KEY  none is needed",
};
if (process.argv[2] in lines) {
  console.log(lines[process.argv[2]]);
} else {
  const payload = JSON.parse(require("fs").readFileSync(0, "utf8"));
  console.log(JSON.stringify({said: `${process.env.HARNESS_MODEL}: ${payload.messages[0]}`}));
}
""",
}
# Puts what was said last before everything else of the payload.
MESSAGES = {
    "bash": """\
#!/usr/bin/env bash
read -r payload
last=$(ls "$HARNESS_SESSION"/messages/*.md | tail -n 1)
more=${payload#\\{}
[ "$more" = "}" ] || more=",$more"
echo "{\\"messages\\":[\\"$(tail -n 1 "$last")\\"]$more"
""",
    "python3": """\
#!/usr/bin/env python3
import json, os, pathlib, sys
last = max(pathlib.Path(os.environ["HARNESS_SESSION"], "messages").iterdir())
print(json.dumps({"messages": [last.read_text().splitlines()[-1]], **json.load(sys.stdin)}))
""",
    "node": """\
#!/usr/bin/env node
const fs = require("fs");
const directory = `${process.env.HARNESS_SESSION}/messages`;
const last = fs.readFileSync(`${directory}/${fs.readdirSync(directory).sort().pop()}`, "utf8");
const payload = JSON.parse(fs.readFileSync(0, "utf8"));
console.log(JSON.stringify({messages: [last.trim().split("\\n").pop()], ...payload}));
""",
}
SAVE = {
    "bash": """\
#!/usr/bin/env bash
answer=$(cat)
said=${answer#*\\"said\\":\\"}
echo "{\\"next_state\\":\\"done\\",\\"output\\":\\"${said%%\\"*}\\"}"
""",
    "python3": """\
#!/usr/bin/env python3
import json, sys
print(json.dumps({"next_state": "done", "output": json.load(sys.stdin)["said"]}))
""",
    "node": """\
#!/usr/bin/env node
const answer = JSON.parse(require("fs").readFileSync(0, "utf8"));
console.log(JSON.stringify({next_state: "done", output: answer.said}));
""",
}
COMMAND = {
    "bash": """\
#!/usr/bin/env bash
[ "$1" = --describe ] && echo "Ships it" && exit
echo "shipped $*"
exit 9
""",
    "python3": """\
#!/usr/bin/env python3
import sys
if sys.argv[1:] == ["--describe"]:
    sys.exit(print("Ships it"))
print("shipped", *sys.argv[1:])
sys.exit(9)
""",
    "node": """\
#!/usr/bin/env node
const words = process.argv.slice(2);
if (words[0] === "--describe") { console.log("Ships it"); process.exit(); }
console.log("shipped", ...words);
process.exitCode = 9;
""",
}
# Adds the source that the variable TEAM names.
SOURCES = {
    "bash": """\
#!/usr/bin/env bash
payload=$(cat)
echo "${payload%]*},\\"$TEAM\\"]}"
""",
    "python3": """\
#!/usr/bin/env python3
import json, os, sys
print(json.dumps({"sources": [*json.load(sys.stdin)["sources"], os.environ["TEAM"]]}))
""",
    "node": """\
#!/usr/bin/env node
const payload = JSON.parse(require("fs").readFileSync(0, "utf8"));
console.log(JSON.stringify({sources: [...payload.sources, process.env.TEAM]}));
""",
}
