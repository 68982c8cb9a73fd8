#!/usr/bin/env bash
# The tour: a real Kafka 4.3.1 metadata log, replayed, decided upon and browsed. `make tour` sets up what it needs.
set -euo pipefail
cd "$(dirname "$0")"
export PATH="$PWD/.venv/bin:$PATH"
LOG=tests/data/kafka-4.3.1-small/__cluster_metadata-0
RULE=3aPpDAnMRlu4BAsYOn9-Bg

say() { printf '\n\033[1m%s\033[0m\n' "$*"; }
show() {  # a command as one would type it, then what it prints; a DENIED answer exits 1 and is no failure here
  printf '\n\033[36m$ aclog %s\033[0m\n' "$*"
  local status=0
  aclog "$@" || status=$?
  [ "$status" -le 1 ] || exit "$status"
}

say "1. What is in the log: every record, as kafka-dump-log would name it (the first rules among them)"
printf '\n\033[36m$ aclog log dump %s | grep -m 4 ACCESS_CONTROL\033[0m\n' "$LOG"
dump=$(aclog log dump "$LOG")
grep -m 4 ACCESS_CONTROL <<<"$dump"
show log verify "$LOG"

say "2. The rules that it adds up to"
show acls list --log "$LOG" --topic orders --format table
show acls list --log "$LOG" --as-of 40 --topic orders --format table

say "3. Three decisions, each with the rule that made it"
show authorize --log "$LOG" --principal User:alice --operation READ --topic orders
show authorize --log "$LOG" --principal User:bob --operation WRITE --topic payments.eu
show authorize --log "$LOG" --principal User:mallory --operation READ --topic orders
show explain --log "$LOG" --principal User:bob --operation WRITE --topic payments.eu

say "4. The same state as a tree (KIP-801: /acl/id/<uuid>)"
show shell --log "$LOG" ls /
show shell --log "$LOG" cat "/acl/id/$RULE"

say "Now with a log of your own: aclog acls list --log /path/to/__cluster_metadata-0     (aclog --help tells the rest)"
