#!/usr/bin/env python3
"""Posts a register of attendance marks as one V2 $batch and prints one line for each record.

Usage: post-register.py [-u URL] [-k KEY] [-t TOKEN] [FILE]

FILE (or standard input) has one flat record a line, in JSON. URL is the V2 attendance service, such as
http://127.0.0.1:8080/V2/Attendance; without the options V2_URL, V2_KEY and V2_TOKEN of the environment are taken.
Exit status: 0 every record was written, 1 one was not or the request failed, 2 usage. Python 3 and nothing else.
"""

import argparse
import email
import http.client
import json
import os
import re
import sys
import time
import urllib.error
import urllib.request
import uuid

TIMEOUT_SECONDS = 120
REPEATS = 3
PAUSE_SECONDS = 10


def build_batch(records):
    """The body of one changeset, and the Content-Type for it. The id in the header is that of the changeset."""
    batch, changeset = uuid.uuid4(), uuid.uuid4()
    lines = [f"--batch_{batch}", f"Content-Type: multipart/mixed; boundary=changeset_{changeset}", ""]
    for number, record in enumerate(records, 1):
        lines += [
            f"--changeset_{changeset}",
            "Content-Type: application/http",
            "Content-Transfer-Encoding: binary",
            f"Content-ID: {number}",
            "",
            "POST /AttendanceServiceFarm1/OData/V1/AttendanceRecords HTTP/1.1",
            "Content-Type: application/json;odata.metadata=minimal",
            "Prefer: return=representation",
            "Accept: application/json;odata.metadata=minimal",
            "Accept-Charset: UTF-8",
            "",
            record,
        ]
    lines += [f"--changeset_{changeset}--", f"--batch_{batch}--", ""]
    return "\r\n".join(lines).encode(), f"multipart/mixed; boundary=batch_{changeset}"


def post(url, key, token, body, content_type):
    """The Content-Type and the bytes of the answer. A status other than 200 is raised as HTTPError."""
    headers = {
        "Ocp-Apim-Subscription-Key": key,
        "Authorization": f"bearer {token}",
        "Content-Type": content_type,
    }
    request = urllib.request.Request(f"{url.rstrip('/')}/$batch", body, headers)
    with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS) as response:
        return response.headers["Content-Type"], response.read()


def pause_before_repeat(error, text):
    """How long to wait before the same batch is sent again; None where V2 could then write it twice, or nothing would change."""
    if error.code == 503 or (error.code == 504 and re.search(rb'"ADP_(OUTCOME_UNKNOWN|JOURNAL_LOST)"', text)):
        asked = error.headers.get("Retry-After", "")
        return int(asked) if re.fullmatch(r"[0-9]{1,2}", asked) else PAUSE_SECONDS
    return None


def post_until_answered(url, key, token, records):
    """As post. The batch is built once: with other ids or bytes it would be another one, and its marks would be written again."""
    body, content_type = build_batch(records)
    for left in range(REPEATS, -1, -1):
        try:
            return post(url, key, token, body, content_type)
        except urllib.error.HTTPError as error:
            text = error.read()
            pause = pause_before_repeat(error, text)
            if left == 0 or pause is None:
                raise RuntimeError(f"{error.code} {text.decode(errors='replace')}") from None
            time.sleep(pause)


def read_parts(content_type, body):
    """The status and the JSON of each part, in the order of the records; flat and nested replies alike."""
    message = email.message_from_bytes(f"Content-Type: {content_type}\r\n\r\n".encode() + body)
    for part in message.walk():
        if part.get_content_type() != "application/http":
            continue
        head, _, text = part.get_payload(decode=True).partition(b"\r\n\r\n")
        yield int(head.split()[1]), json.loads(text) if text.strip() else None


def codes(answer):
    """The codes of a failed part: no value of the record is printed."""
    return " ".join(error["ErrorCode"] for error in answer) if isinstance(answer, list) else ""


def main():
    parser = argparse.ArgumentParser(description="Posts a register as one V2 $batch.")
    parser.add_argument("-u", "--url", default=os.environ.get("V2_URL"))
    parser.add_argument("-k", "--key", default=os.environ.get("V2_KEY"))
    parser.add_argument("-t", "--token", default=os.environ.get("V2_TOKEN"))
    parser.add_argument("file", nargs="?", default="-")
    options = parser.parse_args()
    for name in ("url", "key", "token"):
        if not getattr(options, name):
            parser.error(f"give --{name} or V2_{name.upper()}")
    try:
        with open(0 if options.file == "-" else options.file, encoding="utf-8") as lines:
            records = [line.strip() for line in lines if line.strip()]
    except (OSError, UnicodeDecodeError) as error:
        parser.error(f"cannot read the records: {error}")
    if not records:
        parser.error("there are no records")

    try:
        parts = list(read_parts(*post_until_answered(options.url, options.key, options.token, records)))
    except RuntimeError as error:
        print(f"refused as a whole: {error}", file=sys.stderr)
        return 1
    except (OSError, http.client.HTTPException, ValueError) as error:
        print(f"no answer: {error}. Look up what was written before you post again.", file=sys.stderr)
        return 1
    for number, (status, answer) in enumerate(parts, 1):
        print(f"{number} {status} {codes(answer)}".rstrip())
    if len(parts) != len(records):
        print(f"{len(records)} records, {len(parts)} answers: look up what was written.", file=sys.stderr)
        return 1
    return 0 if all(200 <= status < 300 for status, _ in parts) else 1


if __name__ == "__main__":
    sys.exit(main())
