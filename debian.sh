#!/bin/sh
# Installs the Debian packages that are named, or says how to.
set -eu

fail() {
    echo "setup: $1" >&2
    exit 1
}

command -v apt-get >/dev/null || fail "install $* (or what your system calls them), then run this again"
if [ "$(id -u)" -eq 0 ]; then
    sudo=
elif sudo -n true 2>/dev/null; then
    sudo="sudo -n"
else
    fail "run this line, then make again: sudo apt-get install -y $*"
fi
echo "setup: installing $*"
export DEBIAN_FRONTEND=noninteractive
$sudo apt-get update -qq
$sudo apt-get install -y -qq "$@" >/dev/null ||
    fail "the packages could not be installed: run this line and read why: sudo apt-get install -y $*"
