#!/usr/bin/env bash
# The main job: the tour, then a node (controller and broker) that Kafka's own clients manage, with the tour's rules in it,
# and a console on it for a browser.
# On a terminal it stays until Ctrl-C; otherwise it is asked one thing and changed once, and stopped.
set -euo pipefail
cd "$(dirname "$0")"
./tour.sh
. packaging/show.sh
ACLOG=.venv/bin/aclog

HOME_OF_NODE=build/run
rm -rf "$HOME_OF_NODE"
mkdir -p "$HOME_OF_NODE/data"
cp -r tests/data/kafka-4.3.1-small/{meta.properties,bootstrap.checkpoint,__cluster_metadata-0} "$HOME_OF_NODE/data"
chmod -R u+w "$HOME_OF_NODE"
free_ports() { # how many; another process may take one that is not used at once
  .venv/bin/python - "$1" <<'EOF'
import socket, sys
probes = [socket.create_server(("127.0.0.1", 0)) for _ in range(int(sys.argv[1]))]
print(*(probe.getsockname()[1] for probe in probes))
EOF
}
read -r BROKER CONTROLLER HTTP < <(free_ports 3)
cat > "$HOME_OF_NODE/server.properties" <<EOF
process.roles=broker,controller
node.id=1
log.dirs=$HOME_OF_NODE/data
listeners=PLAINTEXT://127.0.0.1:$BROKER,CONTROLLER://127.0.0.1:$CONTROLLER
controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
controller.quorum.bootstrap.servers=127.0.0.1:$CONTROLLER
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
# For a node that listens on this machine only: every client may do everything.
super.users=User:ANONYMOUS
aclog.http.listener=127.0.0.1:$HTTP
EOF

say "5. A node that Kafka's own clients manage, with the rules of the same log in it"
typed $ACLOG serve "$HOME_OF_NODE/server.properties"
$ACLOG serve "$HOME_OF_NODE/server.properties" &
NODE=$!
CONSOLE=
stop() { for each in $CONSOLE $NODE; do kill "$each" 2>/dev/null || true; wait "$each" 2>/dev/null || true; done; }
trap stop EXIT
trap 'exit 0' INT TERM
until_it_answers() { # process, what it is, address, and the file that it prints to, if any
  for _ in $(seq 300); do
    kill -0 "$1" 2>/dev/null || { cat "${4:-/dev/null}" >&2; echo "the $2 did not start" >&2; exit 1; }
    .venv/bin/python -c "import urllib.request as r; r.urlopen('$3', timeout=5)" 2>/dev/null && return
    sleep 0.1
  done
  echo "the $2 does not answer at $3" >&2
  exit 1
}
until_it_answers "$NODE" node "http://127.0.0.1:$HTTP/readyz"

if [ ! -t 0 ]; then
  show $ACLOG acls add --bootstrap-server "127.0.0.1:$BROKER" --allow-principal User:carol --operation READ --topic invoices
  show $ACLOG acls list --bootstrap-server "127.0.0.1:$BROKER" --topic invoices
fi
say "What to type next, in another terminal"
cat <<EOF

  cd$(quoted "$PWD")
  $ACLOG acls list --bootstrap-server 127.0.0.1:$BROKER --topic orders
  $ACLOG acls add --bootstrap-server 127.0.0.1:$BROKER --allow-principal User:dave --consumer --topic t --group g
  $ACLOG explain --bootstrap-controller 127.0.0.1:$CONTROLLER --principal User:dave --operation READ --topic t
  $ACLOG shell --bootstrap-controller 127.0.0.1:$CONTROLLER watch /acl
  curl -s http://127.0.0.1:$HTTP/metrics

  and with the tools of a Kafka, in its directory:
  bin/kafka-acls.sh --bootstrap-server 127.0.0.1:$BROKER --list
  bin/kafka-acls.sh --bootstrap-controller 127.0.0.1:$CONTROLLER --add --allow-principal User:dave --operation WRITE --topic t
EOF

say "6. Who may what, and why, in a browser"
read -r WEB < <(free_ports 1)
typed $ACLOG console --bootstrap-controller "127.0.0.1:$CONTROLLER" --listen "127.0.0.1:$WEB"
$ACLOG console --bootstrap-controller "127.0.0.1:$CONTROLLER" --listen "127.0.0.1:$WEB" > "$HOME_OF_NODE/console.log" 2>&1 &
CONSOLE=$!
until_it_answers "$CONSOLE" console "http://127.0.0.1:$WEB/" "$HOME_OF_NODE/console.log"
[ ! -t 0 ] || say "The node and its console serve until Ctrl-C."
say "The console: http://127.0.0.1:$WEB/"
[ ! -t 0 ] || wait "$NODE"
