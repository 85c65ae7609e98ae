#!/bin/sh
# Posts a register of attendance marks to V3 directly, and prints one line for each record.
#
# Usage: v3-register.sh FILE. README.md describes the file, the environment and the exit status. POSIX sh, curl 7.55 or newer, jq.
set -eu

usage() {
  echo "$1" >&2
  echo 'usage: V3_URL=… V3_KEY=… V3_TOKEN=… v3-register.sh FILE' >&2
  exit 2
}

: "${V3_URL:=}" "${V3_KEY:=}" "${V3_TOKEN:=}"
[ -n "$V3_URL" ] || usage 'V3_URL is not set'
[ -n "$V3_KEY" ] || usage 'V3_KEY is not set'
[ -n "$V3_TOKEN" ] || usage 'V3_TOKEN is not set'
[ -r "${1:-}" ] || usage 'the file of records cannot be read'

# Only the caller may read the headers, which hold the token, and the marks.
umask 077
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
printf '%s\n' "Ocp-Apim-Subscription-Key: $V3_KEY" "Authorization: Bearer $V3_TOKEN" 'Content-Type: application/json' >"$work/headers"

# The V3 form of each flat record, one per line. The all-zero id asks the service for a new one.
jq -c 'def reference($type): { ExternalID: ., Type: $type };
  { ExternalID: "00000000-0000-0000-0000-000000000000", Present, Absent,
    RecordedOn: (now | todateiso8601), ChangeProcessName: "register",
    Attendee: (.Learner | reference("Learner.Identifier")),
    Event: (.AttendableEvent | reference("Attendance.AttendanceSession")),
    AttendanceCode: (.SchoolAttendanceCode | reference("Attendance.Lookup")),
    Qualifier: { MinutesLate, Comment } }' "$1" >"$work/records" || usage 'the file of records cannot be read'

# V3 did not apply a record that got 429 or 503, so only such a record is sent again.
post() {
  left=${V3_REPEATS:-3}
  while :; do
    : >"$work/head"
    status=$(curl -sS --max-time 60 -D "$work/head" -o "$work/reply" -w '%{http_code}' -H "@$work/headers" \
      --data-binary "@$work/record" "${V3_URL%/}/AttendanceRecords" 2>/dev/null) || { status=unknown; return; }
    case $status in
      429 | 503) [ "$left" -gt 0 ] || return 0 ;;
      5??) status=unknown && return ;;
      *) return 0 ;;
    esac
    left=$((left - 1))
    pause=$(tr -d '\r' <"$work/head" | sed -n 's/^[Rr]etry-[Aa]fter: *\([0-9]*\)$/\1/p' | tail -n 1)
    sleep "${pause:-${V3_PAUSE:-1}}"
  done
}

count=0
failed=0
while IFS= read -r record; do
  printf '%s' "$record" >"$work/record"
  post
  count=$((count + 1))
  codes=
  case $status in
    20[01]) ;;
    *) failed=1 ;;
  esac
  case $status in
    4??) codes=$(jq -r '.error | (.details // [.])[] | " " + .code' "$work/reply" | tr -d '\n') ;;
  esac
  echo "$count $status$codes"
done <"$work/records"
exit "$failed"
