#!/bin/sh
# Posts a register of attendance marks as one V2 $batch and prints one line for each record.
#
# Usage: post-register.sh [-u URL] [-k KEY] [-t TOKEN] [FILE]
#
# FILE (or standard input) has one flat record a line, in JSON. URL is the V2 attendance service, such as
# http://127.0.0.1:8080/V2/Attendance; without the options V2_URL, V2_KEY and V2_TOKEN of the environment are taken.
# Exit status: 0 every record was written, 1 one was not or the request failed, 2 usage. POSIX sh, awk and curl.
set -eu

usage() {
  echo "post-register.sh: $1" >&2
  echo 'Usage: post-register.sh [-u URL] [-k KEY] [-t TOKEN] [FILE]' >&2
  exit 2
}

url=${V2_URL:-} key=${V2_KEY:-} token=${V2_TOKEN:-}
while getopts u:k:t: option; do
  case $option in
    u) url=$OPTARG ;;
    k) key=$OPTARG ;;
    t) token=$OPTARG ;;
    *) usage 'unknown option' ;;
  esac
done
shift $((OPTIND - 1))
[ -n "$url" ] || usage 'give -u or V2_URL'
[ -n "$key" ] || usage 'give -k or V2_KEY'
[ -n "$token" ] || usage 'give -t or V2_TOKEN'

# Only the caller may read the headers, which hold the token, and the marks.
umask 077
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

cat -- "${1:--}" >"$work/records" || usage 'cannot read the records'
grep -q '[^[:space:]]' "$work/records" || usage 'there are no records'

new_guid() {
  od -An -N16 -tx1 /dev/urandom | tr -d ' \n' | sed 's/^\(.\{8\}\)\(.\{4\}\)\(.\{4\}\)\(.\{4\}\)/\1-\2-\3-\4-/'
}
batch=batch_$(new_guid)
changeset=$(new_guid)

# Lines end in CRLF. The id in the header is that of the changeset.
tr -d '\r' <"$work/records" | awk -v batch="$batch" -v changeset="changeset_$changeset" '
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
    print "Accept: application/json;odata.metadata=minimal"
    print "Accept-Charset: UTF-8"
    print ""
    print $0
  }
  END {
    print "--" changeset "--"
    print "--" batch "--"
  }' >"$work/batch"

# The headers come from a file: an argument would show the token to every user of the machine.
printf '%s\n' "Ocp-Apim-Subscription-Key: $key" "Authorization: bearer $token" \
  "Content-Type: multipart/mixed; boundary=batch_$changeset" >"$work/headers"
# The same file each time: with other ids or bytes it would be another batch, and its marks would be written again.
repeats=3
while :; do
  status=$(curl -sS --max-time 120 -D "$work/head" -o "$work/reply" -w '%{http_code}' -H "@$work/headers" \
    --data-binary "@$work/batch" "${url%/}/\$batch") || {
    echo 'no answer: look up what was written before you post again.' >&2
    exit 1
  }
  [ "$repeats" -gt 0 ] || break
  # After any other refusal V2 could write it twice, or nothing would change.
  [ "$status" = 503 ] || { [ "$status" = 504 ] && grep -qE '"ADP_(OUTCOME_UNKNOWN|JOURNAL_LOST)"' "$work/reply"; } || break
  repeats=$((repeats - 1))
  pause=$(tr -d '\r' <"$work/head" | sed -n 's/^[Rr]etry-[Aa]fter: *\([0-9]\{1,2\}\)$/\1/p' | tail -n 1)
  sleep "${pause:-10}"
done
if [ "$status" != 200 ]; then
  echo "refused as a whole: $status $(cat "$work/reply")" >&2
  exit 1
fi

# The answers come in the order of the records, the JSON of each on one line, in flat and in nested replies.
tr -d '\r' <"$work/reply" | awk -v records="$(grep -c '[^[:space:]]' "$work/records")" '
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
    if (count != records) print records " records, " count + 0 " answers: look up what was written." | "cat >&2"
    exit failed || count != records
  }
  function say() {
    if (status == "") return
    print ++count " " status errors
    if (status !~ /^2/) failed = 1
  }'
