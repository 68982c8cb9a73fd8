# What tour.sh and run.sh share: headings, and commands shown as one would type them. Colors on a terminal only, and not
# with NO_COLOR.
if [ -t 1 ] && [ -z "${NO_COLOR:-}" ] && [ "${TERM:-dumb}" != dumb ]; then
  BOLD=$'\033[1m' CYAN=$'\033[36m' PLAIN=$'\033[0m'
else
  BOLD='' CYAN='' PLAIN=''
fi
export ACLOG_PAGER=cat  # what is shown goes on by itself

say() { printf '\n%s%s%s\n' "$BOLD" "$*" "$PLAIN"; }

quoted() {  # the arguments as a shell reads them
  local word
  for word in "$@"; do
    case $word in
      *[!A-Za-z0-9_./:=,@%+-]* | '') printf " '%s'" "${word//\'/\'\\\'\'}" ;;
      *) printf ' %s' "$word" ;;
    esac
  done
}

typed() { printf '\n%s$%s%s\n' "$CYAN" "$(quoted "$@")" "$PLAIN"; }

show() {  # a command, then what it prints; a DENIED answer, and states that differ, exit 1 and are no failure here
  typed "$@"
  local status=0
  "$@" || status=$?
  [ "$status" -le 1 ] || exit "$status"
}
