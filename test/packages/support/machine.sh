# What the commands of a page find on the reader's machine: the service `dawatch`, and terminals, in which programs
# run until the page ends. Each function that the pages do not name replaces a value that they leave to the reader.
set -eo pipefail
trap 'echo "$AT failed" >&2' ERR
trap 'kill $(jobs -p) 2>/dev/null || true' EXIT

# Waits until a program responds over HTTP.
responds() {
  local tries
  for tries in {1..1200}; do
    curl --silent --output /dev/null "$1" && return
    sleep 0.1
  done
  echo "$1 does not respond" >&2
  return 1
}

# Runs the server in place of the one that runs.
serve() {
  systemctl stop
  bash -c "$1" >> service.log 2>&1 &
  SERVICE=$!
  responds "$DAWATCH_URL/livez" || { cat service.log >&2; return 1; }
}

# Stands in for systemd.
systemctl() {
  case $1 in
    stop) [ -z "$SERVICE" ] || { kill "$SERVICE" && wait "$SERVICE" || { cat service.log >&2; return 1; }; SERVICE=; } ;;
    *) serve 'dawatch serve' ;;
  esac
}

# Runs a program in its own terminal. Its sign of life is an address at which it responds, `output`, or none.
terminal() {
  local log=terminal-${#terminals[@]}.log
  : > "$log"
  bash -c "$1" > "$log" 2>&1 &
  terminals+=($!)
  # Until it is a program of its own, a signal would run the trap of this shell in it, which ends the server.
  while cmp --silent /proc/$$/cmdline /proc/$!/cmdline; do sleep 0.1; done
  case $2 in
    http*) responds "$2" || { cat "$log" >&2; return 1; } ;;
    output) printing+=("$log") ;;
  esac
}

# Stops the programs in terminals. Each must still run, not have printed much, and end at SIGTERM.
close_terminals() {
  local index pid log
  for log in "${printing[@]}"; do
    AT="the program of $log, which prints nothing,"
    timeout 120 bash -c "until [ -s $log ]; do sleep 0.1; done"
  done
  for index in "${!terminals[@]}"; do
    pid=${terminals[$index]}
    AT="the program in terminal $index"
    kill "$pid" || { cat "terminal-$index.log" >&2; return 1; }
    timeout 120 tail --pid "$pid" --follow /dev/null
    [ "$(wc --bytes < "terminal-$index.log")" -lt 100000 ]
  done
  systemctl stop
}

# Submits data to the upstream, and prints the id.
new_id() {
  curl --silent --fail "$SANDBOX/v1/submit_data" --header 'x-api-key: sandbox-key' --json '{"data": "hello"}' | jq -r .submission_id
}
