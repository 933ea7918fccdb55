#!/bin/sh
# Makes $VENV with every pinned package. Called by `make setup`, which also knows when there is nothing to do.
set -eu

fail() {
    echo "setup: $1" >&2
    exit 1
}

command -v "$PYTHON" >/dev/null || fail "there is no $PYTHON: install Python 3.11 or later, or name one: make setup PYTHON=…"
"$PYTHON" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    fail "$("$PYTHON" --version) is too old: name a Python 3.11 or later: make setup PYTHON=…"

missing=
"$PYTHON" -c 'import ensurepip, venv' 2>/dev/null || missing="$missing python3-venv"
command -v g++ >/dev/null || missing="$missing g++"
# The names are words.
# shellcheck disable=SC2086
[ -z "$missing" ] || ./debian.sh $missing

[ -x "$VENV/bin/pip" ] || "$PYTHON" -m venv --clear "$VENV"
echo "setup: installing the pinned packages into $VENV"
# Debian's pip is older than what the pins and the model's download were tried with.
"$VENV/bin/pip" install --quiet --disable-pip-version-check -c constraints.txt pip
"$VENV/bin/pip" install --disable-pip-version-check -c constraints.txt -e '.[dev]'
