"""Plugins as somebody else writes them: in each language one program that is, by its name, one of each kind.

`greet` is a tool, `10-gate` a gate, `05-before` and `95-behind` are hooks that write their stage and the
first key of what they read into the file SEEN, `echo` is a provider with its two hooks, `ship` a command, and
`50-team` adds the source that the variable TEAM names.
"""

from __future__ import annotations

from tests.loop.source_files import write_program

PROGRAMS = {
    "bash": r"""#!/usr/bin/env bash
case ${0##*/}:$1 in
  greet:--schema) echo '{"name":"greet","description":"Greets","input_schema":{"type":"object"}}' ;;
  greet:--exec) echo "hello from bash: $(cat)"; echo "and stderr" >&2; exit 3 ;;
  *:--describe) echo "Says it" ;;
  10-gate:*)
    call=$(cat)
    [[ $call == *forbidden* ]] && call="${call%\}},\"decision\":\"deny\",\"reason\":\"no, says bash\"}"
    echo "$call"
    ;;
  05-before:*|95-behind:*)
    input=$(cat)
    keys=$(echo "$input" | grep -o '"[a-z_]*":' | head -1)
    echo "${0##*-} $HARNESS_STAGE $keys" | tr -d '":' >> "$SEEN"
    echo "$input"
    ;;
  echo:--ready) ;;
  echo:--defaults) echo "model=echo-1" ;;
  echo:--env) echo "ECHO_KEY  none is needed" ;;
  echo:*)
    payload=$(cat)
    said=${payload#*\"messages\":[\"}
    echo "{\"said\":\"$HARNESS_MODEL: ${said%%\"*}\"}"
    ;;
  10-messages:*)
    read -r payload
    last=$(ls "$HARNESS_SESSION"/messages/*.md | tail -n 1)
    more=${payload#\{}
    [ "$more" = "}" ] || more=",$more"
    echo "{\"messages\":[\"$(tail -n 1 "$last")\"]$more"
    ;;
  10-save:*)
    answer=$(cat)
    said=${answer#*\"said\":\"}
    echo "{\"next_state\":\"done\",\"output\":\"${said%%\"*}\"}"
    ;;
  ship:*) echo "shipped $*"; exit 9 ;;
  50-team:*) payload=$(cat); echo "${payload%]*},\"$TEAM\"]}" ;;
esac
""",
    "python3": r"""#!/usr/bin/env python3
import json, os, pathlib, sys
name, words = pathlib.Path(sys.argv[0]).name, sys.argv[1:]
flags = {
    "--schema": json.dumps({"name": "greet", "description": "Greets", "input_schema": {"type": "object"}}),
    "--describe": "Says it", "--ready": "", "--defaults": "model=echo-1", "--env": "ECHO_KEY  none is needed",
}
if words and words[0] in flags:
    sys.exit(print(flags[words[0]]))
if name == "ship":
    print("shipped", *words)
    sys.exit(9)
payload = json.load(sys.stdin)
if name == "greet":
    print("hello from python3:", json.dumps(payload), flush=True)
    print("and stderr", file=sys.stderr)
    sys.exit(3)
if name == "10-gate" and "forbidden" in json.dumps(payload["input"]):
    payload |= {"decision": "deny", "reason": "no, says python3"}
if name in {"05-before", "95-behind"}:
    with open(os.environ["SEEN"], "a") as seen:
        print(name[3:], os.environ["HARNESS_STAGE"], *list(payload)[:1], file=seen)
if name == "echo":
    payload = {"said": os.environ["HARNESS_MODEL"] + ": " + payload["messages"][0]}
if name == "10-messages":
    last = max(pathlib.Path(os.environ["HARNESS_SESSION"], "messages").iterdir())
    payload["messages"] = [last.read_text().splitlines()[-1]]
if name == "10-save":
    payload = {"next_state": "done", "output": payload["said"]}
if name == "50-team":
    payload["sources"].append(os.environ["TEAM"])
json.dump(payload, sys.stdout, indent=2)
""",
}


def write_plugins(*names: str, language: str = "bash") -> None:
    """Write the program in a language as these plugins of the user's own source."""
    for name in names:
        write_program(name, PROGRAMS[language])


def write_echo_pack(language: str = "bash") -> None:
    """Write the pack of a provider `echo`, which repeats what was said last."""
    for name in ("providers/echo", "hooks.d/assemble/10-messages", "hooks.d/receive/10-save"):
        write_plugins(f"plugins/echo/{name}", language=language)
