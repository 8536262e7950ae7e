"""Stands for `bd` or `br`, by the name it is called by.

It keeps `.beads/issues.jsonl`, prints the JSON shapes that those programs document, and
notes each call in `.beads/calls.log`. A file `.beads/fail.tmp` says how a command begins that
must fail, `.beads/hang.tmp` one that never ends. It takes no option that they do not have.
"""

import datetime
import fcntl
import json
import os
import pathlib
import sys
import time

NAME = pathlib.Path(sys.argv[0]).name
FOLDER = pathlib.Path(os.environ["BEADS_DIR"])
ISSUES = FOLDER / "issues.jsonl"
STATUSES = {"open", "in_progress", "blocked", "deferred", "closed", "pinned", "hooked"}
FLAGS = {"json", "all", "force", "ephemeral"}
OPTIONS = {
    "create": {"title", "description", "type", "priority", "assignee", "labels", "parent"},
    "list": {"limit"},
    "show": set(),
    "update": {"status", "assignee", "title", "description", "notes", "type", "priority",
               "add-label", "remove-label", "acceptance"},
    "close": {"reason"},
    "reopen": set(),
    "dep": {"type"},
}


def fail(message):
    error = {"code": "X", "message": message} if NAME == "br" else message
    print(json.dumps({"error": error}))
    sys.exit(3 if NAME == "br" else 1)


def now():
    return datetime.datetime.now(datetime.timezone.utc).isoformat().replace("+00:00", "Z")


def told(issue, detailed=False):
    """As it is printed: lists of br leave out what an issue waits for, shows give the others."""
    shown = dict(issue)
    edges = shown.pop("dependencies", [])
    shown["dependency_count"] = len(edges)
    if detailed:
        shown["dependencies"] = [
            {"id": e["depends_on_id"], "title": "", "dependency_type": e["type"]} for e in edges]
    elif NAME == "bd" and edges:
        shown["dependencies"] = edges
    return {name: value for name, value in shown.items() if value not in ("", [], None)}


def main():
    words, options, flags = [], {}, set()
    command = sys.argv[1]
    for word in sys.argv[2:]:
        if not word.startswith("-"):
            words.append(word)
            continue
        name, _, value = word[2:].partition("=")
        if name in FLAGS:
            flags.add(name)
        elif name in OPTIONS[command]:
            options.setdefault(name, []).append(value)
        else:
            fail(f"unknown flag: {word}")
    with open(FOLDER / "calls.log", "a") as log:
        log.write(json.dumps([os.environ.get("BD_ACTOR")] + sys.argv[1:]) + "\n")
    for trouble in ["fail", "hang"]:
        path = FOLDER / f"{trouble}.tmp"
        if path.exists() and " ".join(sys.argv[1:]).startswith(path.read_text().strip()):
            if trouble == "fail":
                fail("database is locked")
            time.sleep(600)
    lock = open(FOLDER / "db.lock", "w")
    fcntl.flock(lock, fcntl.LOCK_EX)
    lines = ISSUES.read_text().splitlines() if ISSUES.exists() else []
    issues = {issue["id"]: issue for issue in map(json.loads, lines)}

    def get(id):
        if id not in issues:
            fail(f"Issue not found: {id}")
        return issues[id]

    one = {name: values[-1] for name, values in options.items()}
    if command == "list":
        chosen = [told(i) for i in issues.values() if "all" in flags or i["status"] != "closed"]
        print(json.dumps({"issues": chosen, "total": len(chosen)} if NAME == "br" else chosen))
        return
    if command == "show":
        print(json.dumps([told(get(id), detailed=True) for id in words]))
        return
    if command == "create":
        parent = one.get("parent")
        if parent:
            get(parent)
            number = 1 + sum(id.startswith(parent + ".") for id in issues)
            id = f"{parent}.{number}"
        else:
            id = f"demo-{len(issues) + 1:x}a"
        edges = [edge(id, parent, "parent-child")] if parent else []
        issues[id] = {
            "id": id, "title": one["title"], "description": one.get("description", ""),
            "status": "open", "priority": int(one.get("priority", 2)),
            "issue_type": one.get("type", "task"), "assignee": one.get("assignee", ""),
            "labels": one["labels"].split(",") if "labels" in one else [],
            "ephemeral": "ephemeral" in flags, "created_at": now(), "updated_at": now(),
            "dependencies": edges}
        answer = told(issues[id])
    elif command == "dep":
        issue, on = get(words[1]), get(words[2])["id"]
        edges = [e for e in issue["dependencies"] if e["depends_on_id"] != on]
        if words[0] == "add":
            edges.append(edge(issue["id"], on, one.get("type", "blocks")))
        issue["dependencies"] = edges
        answer = {"status": words[0], "issue_id": issue["id"], "depends_on_id": on}
    else:
        issue = get(words[0])
        if command == "close":
            issue.update(status="closed", closed_at=now(), close_reason=one.get("reason", ""))
        elif command == "reopen":
            issue.update(status="open", closed_at=None, close_reason=None)
        else:
            status = one.get("status", issue["status"])
            if NAME == "bd" and status not in STATUSES or status == "closed":
                fail(f"invalid status: {status}")
            holder = issue["status"] == "in_progress" and issue.get("assignee")
            if (NAME == "bd" and one.get("assignee", holder) != holder and holder
                    and holder != os.environ.get("BD_ACTOR") and "force" not in flags):
                fail(f"{issue['id']} is claimed by {holder}")
            for name in ["status", "assignee", "title", "description", "notes"]:
                issue[name] = one.get(name, issue.get(name, ""))
            criteria = issue.get("acceptance_criteria", "")
            issue["acceptance_criteria"] = one.get("acceptance", criteria)
            issue["issue_type"] = one.get("type", issue["issue_type"])
            issue["priority"] = int(one.get("priority", issue["priority"]))
            labels = [l for l in issue["labels"] if l not in options.get("remove-label", [])]
            issue["labels"] = labels + options.get("add-label", [])
        issue["updated_at"] = now()
        answer = [told(issue)]
    new = ISSUES.with_suffix(".new.tmp")
    new.write_text("".join(json.dumps(issue) + "\n" for issue in issues.values()))
    os.replace(new, ISSUES)
    print(json.dumps(answer))


def edge(id, on, kind):
    return {"issue_id": id, "depends_on_id": on, "type": kind, "created_at": now(),
            "created_by": os.environ.get("BD_ACTOR", "")}


main()
