#!/bin/sh
# Makes sure that programs are there: scripts/need.sh [--if-possible] PROGRAM...
#
# What is missing is installed through the system's package manager, and each
# command is printed before it runs. Rust is never installed here: `cargo` is
# only looked for, and its version compared. `python3-dbus` and `python3-gi` are
# no programs, but modules of the system's own Python.
#
# With --if-possible it is enough to try: nobody is asked for a password, and
# what cannot be had is only named.

set -eu

say() {
    printf '%s\n' "$*" >&2
}

if_possible=
if [ "${1:-}" = --if-possible ]; then
    if_possible=1
    shift
fi

# fail MESSAGE HINT...
fail() {
    if [ -n "$if_possible" ]; then
        say "warning: $1"
        exit 0
    fi
    say "error: $1"
    shift
    for hint in "$@"; do
        say "hint: $hint"
    done
    exit 1
}

has() {
    case $1 in
    python3-dbus) /usr/bin/python3 -c 'import dbus' >/dev/null 2>&1 ;;
    python3-gi) /usr/bin/python3 -c 'import gi' >/dev/null 2>&1 ;;
    *) command -v "$1" >/dev/null 2>&1 ;;
    esac
}

run() {
    say "running: $*"
    "$@"
}

check_cargo() {
    home=${CARGO_HOME:-${HOME:-}/.cargo}
    if ! has cargo; then
        if [ -x "$home/bin/cargo" ]; then
            fail "cargo is installed, but it is not on the PATH" \
                "in this shell: . \"$home/env\"" \
                "or open a new one"
        fi
        fail "Rust is not installed: there is no cargo" \
            "install it with rustup: https://rustup.rs" \
            "then open a new shell and try again"
    fi
    manifest=$(dirname "$0")/../Cargo.toml
    needed=$(sed -n 's/^rust-version = "1\.\([0-9]*\).*/\1/p' "$manifest" | head -n 1)
    found=$(cargo --version 2>/dev/null | sed -n 's/^cargo 1\.\([0-9]*\).*/\1/p')
    if [ -n "$needed" ] && [ -n "$found" ] && [ "$found" -lt "$needed" ]; then
        fail "Rust 1.$needed or later is needed, and this is 1.$found" \
            "with rustup: rustup update stable" \
            "a Rust of the system's own packages is often too old: https://rustup.rs"
    fi
}

# The package manager: the first one that is there.
find_manager() {
    case $system in
    Darwin) known=brew ;;
    *) known="apt-get dnf pacman apk" ;;
    esac
    for name in $known; do
        if has "$name"; then
            echo "$name"
            return
        fi
    done
}

# The command that installs packages with a manager.
install_command() {
    case $1 in
    apt-get) echo "apt-get install -y --no-install-recommends" ;;
    dnf) echo "dnf install -y" ;;
    pacman) echo "pacman -S --needed --noconfirm" ;;
    apk) echo "apk add" ;;
    brew) echo "brew install" ;;
    esac
}

# The packages that bring a program, as a manager calls them.
packages_of() {
    case $1:$2 in
    cc:apt-get) echo "gcc libc6-dev" ;;
    cc:apk) echo "gcc musl-dev" ;;
    cc:*) echo gcc ;;
    python3:pacman | python3:brew) echo python ;;
    gh:pacman | gh:apk) echo github-cli ;;
    bwrap:*) echo bubblewrap ;;
    notify-send:apt-get) echo libnotify-bin ;;
    notify-send:*) echo libnotify ;;
    dbus-daemon:apt-get | dbus-daemon:pacman | dbus-daemon:apk) echo dbus ;;
    python3-dbus:pacman) echo python-dbus ;;
    python3-dbus:apk) echo py3-dbus ;;
    python3-gi:dnf) echo python3-gobject ;;
    python3-gi:pacman) echo python-gobject ;;
    python3-gi:apk) echo py3-gobject3 ;;
    *) echo "$1" ;;
    esac
}

system=$(uname -s)
manager=$(find_manager)
missing=
packages=
for program in "$@"; do
    if [ "$program" = cargo ]; then
        check_cargo
    elif ! has "$program"; then
        missing="$missing $program"
        packages="$packages $(packages_of "$program" "$manager")"
    fi
done
if [ -z "$missing" ]; then
    exit 0
fi

say "Not installed:$missing"
case $system:" $missing " in
Darwin:*" cc "*) fail "there is no C compiler to link with" "xcode-select --install" ;;
esac
if [ -z "$manager" ]; then
    case $system in
    Darwin) fail "cannot install that: there is no Homebrew" "https://brew.sh, then: brew install$packages" ;;
    *) fail "cannot install that: none of apt-get, dnf, pacman and apk is there" "install it by hand:$missing" ;;
    esac
fi
command="$(install_command "$manager")$packages"
sudo=
if [ "$manager" != brew ] && [ "$(id -u)" -ne 0 ]; then
    has sudo || fail "cannot install that: this is not root, and there is no sudo" "as root: $command"
    sudo=sudo
    if [ -n "$if_possible" ]; then
        sudo -n true 2>/dev/null || fail "skipped, it needs a password: $command"
    fi
fi
# The words below are split on purpose: a command of plain words.
if [ "$manager" = apt-get ]; then
    # shellcheck disable=SC2086
    run $sudo apt-get update || say "warning: the package lists could not be brought up to date"
fi
# shellcheck disable=SC2086
run $sudo $command || fail "the installation failed" "install it by hand:$missing"
for program in $missing; do
    has "$program" || fail "$program is still not on the PATH" "install it by hand"
done
