#!/bin/sh
# Posts a register of attendance marks as one V2 $batch and prints one line for each record.
#
# Usage: post-register.sh FILE. README.md describes the file, the environment and the exit status.
# POSIX sh, awk and curl 7.55 or newer, which have no multipart library: awk writes and reads the lines.
set -eu

usage() {
  echo "$1" >&2
  echo 'usage: V2_URL=… V2_KEY=… V2_TOKEN=… post-register.sh FILE' >&2
  exit 2
}

: "${V2_URL:=}" "${V2_KEY:=}" "${V2_TOKEN:=}"
[ -n "$V2_URL" ] || usage 'V2_URL is not set'
[ -n "$V2_KEY" ] || usage 'V2_KEY is not set'
[ -n "$V2_TOKEN" ] || usage 'V2_TOKEN is not set'
[ -r "${1:-}" ] || usage 'the file of records cannot be read'
grep -q '[^[:space:]]' "$1" || usage 'there are no records'

# Only the caller may read the headers, which hold the token, and the marks.
umask 077
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

id=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n' | sed 's/^\(.\{8\}\)\(.\{4\}\)\(.\{4\}\)\(.\{4\}\)/\1-\2-\3-\4-/')

# Lines end in CRLF. Batch and changeset share the id, which the header must have.
tr -d '\r' <"$1" | awk -v batch="batch_$id" -v changeset="changeset_$id" '
  BEGIN {
    ORS = "\r\n"
    print "--" batch
    print "Content-Type: multipart/mixed; boundary=" changeset
    print ""
  }
  /[^ \t]/ {
    print "--" changeset
    print "Content-Type: application/http"
    print "Content-Transfer-Encoding: binary"
    print "Content-ID: " ++count
    print ""
    print "POST /AttendanceServiceFarm1/OData/V1/AttendanceRecords HTTP/1.1"
    print "Content-Type: application/json;odata.metadata=minimal"
    print "Prefer: return=representation"
    print ""
    print $0
  }
  END {
    print "--" changeset "--"
    print "--" batch "--"
  }' >"$work/batch"

# The headers come from a file: an argument would show the token to every user of the machine.
printf '%s\n' "Ocp-Apim-Subscription-Key: $V2_KEY" "Authorization: Bearer $V2_TOKEN" \
  "Content-Type: multipart/mixed; boundary=batch_$id" >"$work/headers"
# The same file each time. With other bytes or another boundary it would be another batch, and its marks would be written again.
# Set V2_REPEATS=0 where V2 serves, because V2 does not recognise a repeated batch.
repeats=${V2_REPEATS:-3}
while :; do
  : >"$work/head"
  if status=$(curl -sS --max-time 120 -D "$work/head" -o "$work/reply" -w '%{http_code}' -H "@$work/headers" \
    --data-binary "@$work/batch" "${V2_URL%/}/\$batch") &&
    # Only Markbridge and V2 answer with JSON or a batch. Any other reply, such as a load balancer's page, says nothing about the batch.
    case $status$(tr -d ' \t\r\n' <"$work/reply" | cut -c 1) in [34]??[[{]) ;; *) grep -qE 'batchresponse_|"ADP_' "$work/reply" ;; esac; then
    # After any other answer, such as a part with V2's own 503, V2 could write it twice, or nothing would change.
    case $status in
      503) ;;
      504) grep -qE '"ADP_(OUTCOME_UNKNOWN|JOURNAL_LOST)"' "$work/reply" || break ;;
      200) grep -qE '"ErrorCode":"ADP_(UPSTREAM_UNAVAILABLE|JOURNAL_UNAVAILABLE|BUDGET_EXCEEDED|OVERLOADED|OUTCOME_UNKNOWN)"' "$work/reply" || break ;;
      *) break ;;
    esac
    [ "$repeats" -gt 0 ] || break
  elif [ "$repeats" -eq 0 ]; then
    echo 'no answer: look up what was written before you post again' >&2
    exit 1
  fi
  repeats=$((repeats - 1))
  pause=$(tr -d '\r' <"$work/head" | sed -n 's/^[Rr]etry-[Aa]fter: *\([0-9]*\)$/\1/p' | tail -n 1)
  sleep "${pause:-${V2_PAUSE:-10}}"
done
if [ "$status" != 200 ]; then
  echo "refused as a whole: $status $(cat "$work/reply")" >&2
  exit 1
fi

# The answers come in the order of the records, the JSON of each on one line, in flat and in nested replies.
tr -d '\r' <"$work/reply" | awk -v records="$(grep -c '[^[:space:]]' "$1")" '
  /^HTTP\/1\.1 / { say(); status = $2; errors = "" }
  /^\[/ {
    rest = $0
    while (match(rest, /"ErrorCode":"[^"]*"/)) {
      errors = errors " " substr(rest, RSTART + 13, RLENGTH - 14)
      rest = substr(rest, RSTART + RLENGTH)
    }
  }
  END {
    say()
    if (count != records) print records " records, " count + 0 " answers: look up what was written" | "cat >&2"
    exit failed || count != records
  }
  function say() {
    if (status == "") return
    print ++count " " status errors
    if (status !~ /^2/) failed = 1
  }'
