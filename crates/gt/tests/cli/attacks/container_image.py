"""Writes a file system of this machine's own programs as a tar archive to standard output.

It holds the programs that the tests of containers run, with their libraries, Python's modules and git's programs, and the
libraries of the program that is its argument.
"""

import glob
import os
import re
import shutil
import subprocess
import sys
import tarfile

PROGRAMS = """
    sh bash cat chmod cp cut date dirname echo env expr false git grep head id kill ln ls mkdir mktemp mount mv nsenter ps
    python3 readlink rm sed sleep sort stty tail test timeout tmux touch tr true tty umount uname unshare wc
""".split()
FOLDERS = ["root", "tmp", "run", "var/tmp", "proc", "sys", "dev", "home"]

archive = tarfile.open(fileobj=sys.stdout.buffer, mode="w|")
written = set()


def add(path):
    """Adds a file with its parent folders; links of the machine's file system stay links."""
    parts = path.strip("/").split("/")
    for end in range(1, len(parts) + 1):
        part = "/" + "/".join(parts[:end])
        if part in written:
            if os.path.islink(part):
                target = os.path.normpath(os.path.join(os.path.dirname(part), os.readlink(part)))
                return add("/".join([target, *parts[end:]]))
            continue
        written.add(part)
        archive.add(part, part.strip("/"), recursive=False)
        if os.path.islink(part):
            target = os.path.normpath(os.path.join(os.path.dirname(part), os.readlink(part)))
            return add("/".join([target, *parts[end:]]))


def add_with_libraries(path):
    add(path)
    add_libraries(path)


def add_libraries(path):
    said = subprocess.run(["ldd", path], capture_output=True, text=True).stdout
    for library in re.findall(r"(/\S+) \(0x", said):
        add(library)


def add_tree(folder, skipped):
    for parent, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if name not in skipped]
        for name in files:
            if name.endswith(".so"):
                add_with_libraries(os.path.join(parent, name))
            else:
                add(os.path.join(parent, name))


def add_python():
    line = "import sys, sysconfig; print(sys.executable); print(sysconfig.get_path('stdlib'))"
    said = subprocess.run(["python3", "-c", line], capture_output=True, text=True, check=True)
    python, modules = said.stdout.split()
    add_with_libraries(python)
    add_with_libraries(os.path.realpath(python))
    add_tree(modules, {"__pycache__", "dist-packages", "ensurepip", "idlelib", "lib2to3", "site-packages", "test"})
    add_link("usr/local/bin/python3", python)


def add_link(path, target):
    link = tarfile.TarInfo(path)
    link.type, link.linkname = tarfile.SYMTYPE, target
    archive.addfile(link)


add("/usr/bin/env")
for folder in ["/bin", "/lib", "/lib64", "/sbin"]:
    if os.path.lexists(folder):
        add(folder)
for program in PROGRAMS:
    path = shutil.which(program)
    if program == "python3":
        add_python()
    elif path:
        add_with_libraries(path)
git = subprocess.run(["git", "--exec-path"], capture_output=True, text=True, check=True).stdout.strip()
add_with_libraries(f"{git}/git")
add_libraries(sys.argv[1])
for path in glob.glob("/lib/terminfo/[xst]/*") + glob.glob("/usr/share/terminfo/[xst]/*"):
    add(path)
for path in ["/etc/passwd", "/etc/group"]:
    add(path)
for folder in FOLDERS:
    if f"/{folder}" not in written:
        info = tarfile.TarInfo(folder)
        info.type, info.mode = tarfile.DIRTYPE, 0o1777 if folder.endswith("tmp") else 0o755
        archive.addfile(info)
archive.close()
