"""Tries to leave the sandbox of an agent. Prints a line per attempt: `denied NAME` or `ESCAPED NAME`.

The arguments are the home folder, the town, the socket of the tmux server, the pid of a process outside, the folder of
another agent's worktree, and the mount namespace of the machine. Attempts that would change the machine are made only in
another mount namespace than that.
"""

import ctypes
import os
import signal
import socket
import subprocess
import sys

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
