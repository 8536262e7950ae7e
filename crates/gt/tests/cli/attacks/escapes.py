"""Tries to leave the sandbox of an agent. Prints a line per attempt: `denied NAME` or `ESCAPED NAME`.

The arguments are the home folder, the town, the socket of the tmux server, the pid of a process outside, the folder of
another agent's worktree, and the mount namespace of the machine. Attempts that would change the machine are made only in
another mount namespace than that.
"""

import ctypes
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time

home, town, tmux, outside, other, namespace = sys.argv[1:]
is_isolated = os.readlink("/proc/self/ns/mnt") != namespace
outside = int(outside)
worktree = os.getcwd()
git = subprocess.run(["git", "rev-parse", "--git-common-dir"], capture_output=True, text=True).stdout.strip()
own = subprocess.run(["git", "rev-parse", "--absolute-git-dir"], capture_output=True, text=True).stdout.strip()
libc = ctypes.CDLL(None, use_errno=True)
attempts = []


def attempt(function):
    attempts.append(function)
    return function


def attempt_if_isolated(function):
    """Registers an attempt that would change the machine itself."""
    if is_isolated:
        attempts.append(function)
    return function


def run(*words, **options):
    done = subprocess.run(words, capture_output=True, text=True, timeout=20, **options)
    return done.returncode == 0


def reads(path):
    with open(path, "rb") as file:
        return len(file.read(64)) > 0


def writes(path):
    with open(path, "ab") as file:
        file.write(b"\n")
    return True


def opens(path):
    os.close(os.open(path, os.O_WRONLY))
    return True


def files(name, act, path):
    def function():
        return act(path)

    function.__name__ = name
    attempt(function)


files("read_ssh_key", reads, f"{home}/.ssh/id")
files("read_aws_credentials", reads, f"{home}/.aws/credentials")
files("read_github_token", reads, f"{home}/.config/gh/hosts.yml")
files("read_git_credentials", reads, f"{home}/.git-credentials")
files("read_login_of_another_program", reads, f"{home}/.codex/auth.json")
files("read_town_settings", reads, f"{town}/town.toml")
files("read_work_items", reads, f"{town}/items.db")
files("read_journal", reads, f"{town}/.sessions/index.jsonl")
files("read_file_of_another_worktree", reads, f"{other}/a")
# Before the attempts that would damage the repository.
@attempt
def make_tag():
    return run("git", "tag", "escape")


@attempt
def push_to_the_source():
    return run("git", "push", "origin", "HEAD:refs/heads/escape")


files("write_home", writes, f"{home}/.profile")
files("write_program_path", writes, f"{home}/.local/bin/git")
files("write_etc", opens, "/etc/passwd")
files("write_usr", opens, "/usr/bin/env")
files("write_town_settings", writes, f"{town}/town.toml")
files("write_nudge_queue", writes, f"{town}/.runtime/nudges/escape")
files("write_hooks_of_gt", writes, f"{town}/.runtime/hooks/claude.json")
files("write_git_config", writes, f"{git}/config")
files("write_git_hook", writes, f"{git}/hooks/post-checkout")
files("write_base_ref", writes, f"{git}/refs/heads/main")
files("write_packed_refs", writes, f"{git}/packed-refs")
files("write_alternates", writes, f"{git}/objects/info/alternates")
files("write_worktree_link", writes, f"{worktree}/.git")
files("write_gitdir_of_worktree", writes, f"{own}/gitdir")
files("write_commondir_of_worktree", writes, f"{own}/commondir")
files("write_configuration_of_worktree", writes, f"{own}/config.worktree")
files("write_configuration_of_clone", writes, f"{git}/config.worktree")
files("write_head_of_clone", writes, f"{git}/HEAD")
files("write_remote_ref", writes, f"{git}/refs/remotes/origin/main")
files("write_private_refs_of_another_worktree", writes, f"{git}/worktrees/joe/HEAD")
files("read_kernel_memory", reads, "/proc/kcore")
files("read_memory_device", reads, "/dev/mem")
files("write_oom_score_of_a_process_outside", opens, f"/proc/{outside}/oom_score_adj")
files("write_memory_of_a_process_outside", opens, f"/proc/{outside}/mem")
files("read_town_through_a_process_outside", reads, f"/proc/{outside}/root{town}/town.toml")
files("write_sysctl", opens, "/proc/sys/kernel/core_pattern")
files("write_sysrq", opens, "/proc/sysrq-trigger")
files("write_sysfs", opens, "/sys/kernel/uevent_seqnum")
files("read_environment_of_a_process_outside", reads, f"/proc/{outside}/environ")
files("read_memory_of_a_process_outside", reads, f"/proc/{outside}/maps")


@attempt
def move_base_by_git():
    return run("git", "update-ref", "refs/heads/main", "HEAD~0", "--no-deref") and run(
        "git", "update-ref", "refs/heads/escape", "HEAD"
    )


@attempt
def move_merged_ref():
    return run("git", "update-ref", "refs/gt/merged/main", "HEAD")


@attempt
def move_branch_of_another_agent():
    return run("git", "update-ref", "refs/heads/crew/joe", "HEAD")


@attempt
def set_git_config():
    return run("git", "config", "core.fsmonitor", "true")


@attempt
def set_git_config_of_worktree():
    return run("git", "config", "--worktree", "core.fsmonitor", "true")


@attempt
def add_worktree():
    return run("git", "worktree", "add", "--detach", f"{worktree}/more")


@attempt
def rename_worktree_link():
    os.rename(f"{worktree}/.git", f"{worktree}/.git2")
    return True


@attempt
def connect_to_tmux():
    client = socket.socket(socket.AF_UNIX)
    client.connect(tmux)
    return True


@attempt
def command_tmux():
    return run("tmux", "-S", tmux, "list-sessions")


@attempt
def connect_to_socket_of_the_town():
    client = socket.socket(socket.AF_UNIX)
    # Its full path may be too long for a socket.
    os.chdir(f"{town}/.runtime")
    try:
        client.connect("escape.sock")
    finally:
        os.chdir(worktree)
    return True


@attempt
def list_brokers_of_other_agents():
    return len(os.listdir(f"{town}/.runtime/sandbox")) > 0


@attempt
def open_descriptor_of_process_outside():
    os.close(os.pidfd_open(outside))
    return True


@attempt
def signal_process_outside():
    os.kill(outside, signal.SIGUSR1)
    return True


@attempt
def trace_process_outside():
    if libc.ptrace(16, outside, 0, 0) != 0:
        raise OSError(ctypes.get_errno())
    libc.ptrace(17, outside, 0, 0)
    return True


@attempt
def read_memory_of_process_outside_by_call():
    class Vector(ctypes.Structure):
        _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]

    with open("/proc/self/maps") as maps:
        start = int(maps.readline().split("-")[0], 16)
    buffer = ctypes.create_string_buffer(8)
    ours = Vector(ctypes.addressof(buffer), 8)
    theirs = Vector(start, 8)
    return libc.process_vm_readv(outside, ctypes.byref(ours), 1, ctypes.byref(theirs), 1, 0) > 0


@attempt
def find_secret_of_the_caller_in_the_environment():
    return any("planted-secret" in value for value in os.environ.values())


@attempt
def run_program_by_the_environment_of_gt():
    folder = f"{worktree}/planted"
    os.makedirs(folder, exist_ok=True)
    for name in ["git", "tmux"]:
        with open(f"{folder}/{name}", "w") as file:
            file.write(f"#!/bin/sh\ntouch {home}/escaped\n")
        os.chmod(f"{folder}/{name}", 0o755)
    environment = {
        **os.environ,
        "PATH": f"{folder}:{os.environ['PATH']}",
        "GIT_SSH_COMMAND": f"touch {home}/escaped",
        "LD_PRELOAD": f"{folder}/missing.so",
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "core.fsmonitor",
        "GIT_CONFIG_VALUE_0": f"touch {home}/escaped",
    }
    gt = shutil.which("gt")
    for words in [["status"], ["checkpoint", "write"], ["agents"]]:
        subprocess.run([gt, *words], env=environment, capture_output=True, timeout=20)
    # A sandbox reads the home folder; in a container the test looks.
    return os.path.exists(f"{home}/escaped")


@attempt
def race_a_link_against_its_check():
    """Swaps a file for a link to a secret while it is opened again and again, for two seconds."""
    name, other = f"{worktree}/raced", f"{worktree}/raced2"
    with open(name, "w") as file:
        file.write("own")
    if not os.path.lexists(other):
        os.symlink(f"{home}/.ssh/id", other)
    ended = threading.Event()

    def swap():
        while not ended.is_set():
            libc.renameat2(-100, name.encode(), -100, other.encode(), 2)

    # Python otherwise changes between threads every 5 ms.
    sys.setswitchinterval(1e-5)
    end = time.monotonic() + 2
    thread = threading.Thread(target=swap)
    thread.start()
    try:
        while time.monotonic() < end:
            if b"secret" in raced_read(name):
                return True
        return False
    finally:
        ended.set()
        thread.join()


def raced_read(path):
    try:
        with open(path, "rb") as file:
            return file.read(64)
    except OSError:
        return b""


@attempt_if_isolated
def race_a_mount_over_a_hidden_folder():
    """Mounts over, and moves, a hidden folder from several namespaces at once."""
    line = f"mount --bind / {worktree}/planted; mount --move {home}/.ssh {worktree}/planted; cat {home}/.ssh/id {worktree}/planted{home}/.ssh/id {worktree}/planted/id"
    words = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", line]
    runs = [subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) for _ in range(8)]
    return any(b"secret" in done.communicate(timeout=20)[0] for done in runs)


@attempt_if_isolated
def plant_a_repository_that_git_enters_outside():
    """Its filter would run in the `git status` of a person. The test looks whether it did."""
    inside = f"{worktree}/inside"
    os.mkdir(inside)
    user = ["-c", "user.name=max", "-c", "user.email=max@localhost"]
    open(f"{inside}/f", "w").write("one")
    run("git", "init", "-q", cwd=inside)
    run("git", "add", "f", cwd=inside)
    run("git", *user, "commit", "-qm", "one", cwd=inside)
    run("git", "config", "filter.planted.clean", f"touch {home}/escaped; cat", cwd=inside)
    os.makedirs(f"{inside}/.git/info", exist_ok=True)
    open(f"{inside}/.git/info/attributes", "w").write("* filter=planted")
    open(f"{inside}/f", "w").write("two")
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=inside, capture_output=True, text=True).stdout.strip()
    if not run("git", "update-index", "--add", "--cacheinfo", f"160000,{head},inside"):
        raise SystemExit("the repository cannot be planted")
    return False


@attempt
def rename_worktree():
    os.rename(worktree, f"{worktree}2")
    os.rename(f"{worktree}2", worktree)
    return True


@attempt
def move_hidden_folder_away():
    os.rename(f"{home}/.ssh", f"{worktree}/.ssh")
    os.rename(f"{worktree}/.ssh", f"{home}/.ssh")
    return True


@attempt
def link_secret_into_worktree():
    os.link(f"{home}/.profile", f"{worktree}/linked")
    return writes(f"{worktree}/linked")


@attempt
def follow_link_to_secret():
    link = f"{worktree}/link-to-secret"
    if not os.path.islink(link):
        os.symlink(f"{home}/.ssh/id", link)
    return reads(link)


@attempt
def follow_link_to_home():
    link = f"{worktree}/link-to-home"
    if not os.path.islink(link):
        os.symlink(home, link)
    return writes(f"{link}/.bashrc")


@attempt_if_isolated
def remount_root():
    if libc.mount(None, b"/", None, 32 | 4096, None) != 0:
        raise OSError(ctypes.get_errno())
    return writes(f"{home}/.profile")


@attempt_if_isolated
def unmount_hidden_folder():
    if libc.umount2(f"{home}/.ssh".encode(), 2) != 0:
        raise OSError(ctypes.get_errno())
    return reads(f"{home}/.ssh/id")


@attempt_if_isolated
def unmount_in_a_new_namespace():
    return run("unshare", "--user", "--map-root-user", "--mount", "sh", "-c", f"umount {home}/.ssh && cat {home}/.ssh/id")


@attempt_if_isolated
def remount_in_a_new_namespace():
    line = f"mount -o remount,bind,rw / && touch {home}/.profile"
    return run("unshare", "--user", "--map-root-user", "--mount", "sh", "-c", line)


@attempt
def enter_namespace_of_a_process_outside():
    return run("nsenter", "--target", str(outside), "--mount", "cat", f"{home}/.ssh/id")


@attempt_if_isolated
def leave_by_chroot():
    os.chroot("/proc/1/root")
    return True


@attempt
def read_through_descriptor_of_init():
    return reads(f"/proc/1/root{home}/.ssh/id")


@attempt
def read_through_working_folder_of_init():
    return reads(f"/proc/1/cwd/../../../../../../../../../..{home}/.ssh/id")


@attempt
def type_into_terminal():
    import fcntl
    import termios

    with open("/dev/tty", "rb") as tty:
        fcntl.ioctl(tty, termios.TIOCSTI, b"#")
    return True


@attempt_if_isolated
def make_block_device():
    os.mknod(f"{worktree}/disk", 0o600 | 0o060000, os.makedev(254, 0))
    return reads(f"{worktree}/disk")


@attempt
def call_gt_of_a_person():
    return run("env", "-i", f"HOME={home}", f"PATH={os.environ['PATH']}", "gt", "--town", town, "status")


@attempt
def call_gt_as_mayor():
    environment = {**os.environ, "GT_ROLE": "mayor"}
    return run("gt", "stop", "gastown/crew/joe", env=environment)


@attempt
def start_agent_without_sandbox():
    return run("gt", "start", "gastown/crew/ann", "--sandbox", "none", "--create")


@attempt
def run_command_by_gt():
    return run("gt", "start", "gastown/crew/ann", "--command", f"touch {home}/escaped", "--create")


@attempt
def run_agent_by_gt():
    return run("gt", "internal", "run-agent", "gastown/crew/max", "--", "touch", f"{home}/escaped")


@attempt
def read_file_by_gt():
    return run("gt", "work", "import", f"{home}/.ssh/id")


@attempt
def answer_own_question():
    return run("gt", "answer", "gastown/crew/max", "yes")


@attempt
def type_by_gt():
    return run("gt", "keys", "gastown/crew/max", "x")


for function in attempts:
    try:
        escaped = function()
    except Exception:
        escaped = False
    print("ESCAPED" if escaped else "denied", function.__name__, flush=True)
print("end", len(attempts), flush=True)
