"""A GitHub that only pretends, for the real gh: github.py FOLDER

It is the proxy through which gh reaches every host (HTTPS_PROXY), so that it needs no name
and no port of its own, and nothing goes out. It reads cert.pem and key.pem in FOLDER. It
writes there: `port`, once it listens; `requests`, what it was asked, a JSON text a line;
`pulls.json`, what was made. What the file `hang` names is never answered.
"""

import http.server
import json
import pathlib
import re
import ssl
import sys
import threading

FOLDER = pathlib.Path(sys.argv[1])
LOGIN = "token good-secret"
REPOSITORY = {
    "id": "R1",
    "name": "repo",
    "owner": {"login": "owner"},
    "viewerPermission": "WRITE",
    "defaultBranchRef": {"name": "main"},
}


def text_of(name, default=""):
    path = FOLDER / name
    return path.read_text() if path.exists() else default


def pulls_of(branch):
    pulls = json.loads(text_of("pulls.json", "[]"))
    nodes = [{"url": pull["url"]} for pull in pulls if pull["headRefName"] == branch]
    return {"pullRequests": {"totalCount": len(nodes), "nodes": nodes, "pageInfo": {}}}


def create(wanted):
    pulls = json.loads(text_of("pulls.json", "[]"))
    url = f"https://github.test/owner/repo/pull/{len(pulls) + 1}"
    (FOLDER / "pulls.json").write_text(json.dumps([*pulls, {"url": url, **wanted}]))
    return {"pullRequest": {"id": "P1", "url": url}}


# What gh asks for by these names, and the answer's data.
ANSWERS = {
    "RepositoryInfo": lambda given: {"repository": REPOSITORY},
    "PullRequestList": lambda given: {"repository": pulls_of(given["headBranch"])},
    "PullRequestForBranch": lambda given: {"repository": pulls_of(given["headRefName"])},
    "PullRequestCreate": lambda given: {"createPullRequest": create(given["input"])},
}


class Asked(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_CONNECT(self):
        self.send_response(200)
        self.end_headers()
        self.connection = TLS.wrap_socket(self.connection, server_side=True)
        self.rfile = self.connection.makefile("rb")
        self.wfile = self.connection.makefile("wb", buffering=0)
        self.close_connection = False

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        name = re.search(r"\b(?:query|mutation) (\w+)", asked["query"])[1]
        with (FOLDER / "requests").open("a") as file:
            file.write(json.dumps({"name": name, "path": self.path}) + "\n")
        if name == text_of("hang"):
            threading.Event().wait()
        if self.headers.get("Authorization") != LOGIN:
            self.say(401, {"message": "Bad credentials"})
        elif name in ANSWERS:
            self.say(200, {"data": ANSWERS[name](asked["variables"])})
        else:
            self.say(200, {"errors": [{"message": f"unknown operation {name}"}]})

    def say(self, status, value):
        text = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *words):
        pass


TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
TLS.load_cert_chain(FOLDER / "cert.pem", FOLDER / "key.pem")
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Asked)
(FOLDER / "port.new").write_text(str(server.server_port))
(FOLDER / "port.new").rename(FOLDER / "port")
server.serve_forever()
