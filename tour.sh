#!/usr/bin/env bash
# The tour: why a request was denied, the fix and what it would grant, two moments of time, the tree; on a log that a
# real Kafka 4.3.1 wrote. `make tour` sets up what it needs.
set -euo pipefail
cd "$(dirname "$0")"
. packaging/show.sh
ACLOG=.venv/bin/aclog
LOG=tests/data/kafka-4.3.1-small/__cluster_metadata-0
COPY=build/tour/__cluster_metadata-0
THEN=2026-11-21T02:25:13Z

say "A tour of the metadata log of a real Kafka 4.3.1. Each command can be pasted as it stands, in $PWD"

say "1. Bob's producer is denied. Why, and what would fix it?"
show $ACLOG explain --log $LOG --principal User:bob --operation WRITE --topic payments.eu

say "2. The fix, tried on a copy: the same request again, and all that the fix grants, exactly"
rm -rf build/tour
mkdir -p build/tour
show cp -r $LOG build/tour
chmod -R u+w build/tour
show $ACLOG acls remove --log $COPY --deny-principal User:bob --deny-host 127.0.0.1 --operation Write \
  --topic payments. --resource-pattern-type prefixed --force
show $ACLOG authorize --log $COPY --principal User:bob --operation WRITE --topic payments.eu
show $ACLOG diff --log $LOG --to-log $COPY

say "3. Two moments: the rules on orders at $THEN, and at the end of the log"
show $ACLOG acls list --log $LOG --as-of $THEN --topic orders --format table
show $ACLOG acls list --log $LOG --topic orders --format table
say "   So Carol lost something for a while: when exactly, and by which change?"
show $ACLOG when --log $LOG --principal User:carol --host 10.1.2.3 --operation READ --topic orders

say "4. The same state as a tree, to walk through (KIP-801: /acl/id/<uuid>)"
show $ACLOG shell --log $LOG ls /
show $ACLOG shell --log $LOG cat /acl/id/S-Xn6z2XSjuee8K6tHhplg

say "Now with a log of your own: $ACLOG acls list --log /path/to/__cluster_metadata-0     ($ACLOG --help tells the rest)"
