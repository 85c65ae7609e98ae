#!/usr/bin/env python3
"""Posts a register of attendance marks as one V2 $batch, and prints a line for each record.

Usage: post-register.py FILE. README.md describes the file, the environment and the exit status.
Python 3 with requests; the email package of the standard library writes and reads multipart.
"""

import email.parser
import email.policy
import json
import os
import re
import sys
import time
import uuid
from email.mime.multipart import MIMEMultipart
from email.mime.nonmultipart import MIMENonMultipart

import requests

# Set V2_REPEATS=0 where V2 serves, because V2 does not recognise a repeated batch.
REPEATS = int(os.environ.get("V2_REPEATS", "3"))
HTTP = email.policy.HTTP


def build_batch(records):
    """The Content-Type and the body. Batch and changeset share the id, which the header must have."""
    own_id = uuid.uuid4()
    batch = MIMEMultipart("mixed", boundary=f"batch_{own_id}", policy=HTTP)
    changeset = MIMEMultipart("mixed", boundary=f"changeset_{own_id}", policy=HTTP)
    batch.attach(changeset)
    for number, record in enumerate(records, 1):
        part = MIMENonMultipart("application", "http", policy=HTTP)
        part["Content-Transfer-Encoding"] = "binary"
        part["Content-ID"] = str(number)
        request = (
            "POST /AttendanceServiceFarm1/OData/V1/AttendanceRecords HTTP/1.1\r\n"
            "Content-Type: application/json;odata.metadata=minimal\r\n"
            "Prefer: return=representation\r\n"
            f"\r\n{record}"
        )
        part.set_payload(request.encode().decode("ascii", "surrogateescape"))
        changeset.attach(part)
    _, _, body = batch.as_bytes(policy=HTTP).partition(b"\r\n\r\n")
    # Some versions of requests accept a plain str only, and this is a subclass.
    return str(batch["Content-Type"]), body


def is_own(reply):
    """Recognises a reply of Markbridge or V2. Any other reply, such as a load balancer's page, says nothing about the batch."""
    return re.search(r'^[34]..\s*[{[]|batchresponse_|"ADP_', f"{reply.status_code}{reply.text}")


def may_repeat(reply):
    """After any other answer, such as a part with V2's own 503, V2 could write the batch twice, or nothing would change."""
    codes = {
        503: "",
        504: '"ADP_(OUTCOME_UNKNOWN|JOURNAL_LOST)"',
        200: '"ErrorCode":"ADP_(UPSTREAM_UNAVAILABLE|JOURNAL_UNAVAILABLE|BUDGET_EXCEEDED|OVERLOADED|OUTCOME_UNKNOWN)"',
    }
    return reply.status_code in codes and re.search(codes[reply.status_code], reply.text)


def post(url, headers, body):
    """The reply. With other bytes or another boundary it would be another batch, and its marks would be written again."""
    for left in range(REPEATS, -1, -1):
        pause = os.environ.get("V2_PAUSE", "10")
        try:
            reply = requests.post(url, body, headers=headers, timeout=120)
            # Versions of requests before 2.32 do not notice a reply that breaks off.
            if reply.raw.tell() < int(reply.headers.get("Content-Length", "0")):
                raise requests.ConnectionError
            if not is_own(reply):
                raise requests.ConnectionError
            if left == 0 or not may_repeat(reply):
                return reply
            asked = reply.headers.get("Retry-After", "")
            pause = asked if asked.isdigit() else pause
        except requests.RequestException as error:
            if left == 0:
                sys.exit(f"no answer ({type(error).__name__}): look up what was written before you post again")
        time.sleep(int(pause))


def read_parts(content_type, body):
    """The status and the JSON of each part, in the order of the records; flat and nested replies alike."""
    message = email.parser.BytesParser(policy=HTTP).parsebytes(f"Content-Type: {content_type}\r\n\r\n".encode() + body)
    for part in message.walk():
        if part.get_content_type() == "application/http":
            head, _, text = part.get_payload(decode=True).partition(b"\r\n\r\n")
            yield int(head.split()[1]), json.loads(text)


def usage(problem):
    print(f"{problem}\nusage: V2_URL=… V2_KEY=… V2_TOKEN=… post-register.py FILE", file=sys.stderr)
    sys.exit(2)


def main():
    url, key, token = (os.environ.get(name) or usage(f"{name} is not set") for name in ("V2_URL", "V2_KEY", "V2_TOKEN"))
    try:
        with open(sys.argv[1], encoding="utf-8") as file:
            records = [line.strip() for line in file if line.strip()]
    except (IndexError, OSError):
        usage("the file of records cannot be read")
    if not records:
        usage("there are no records")
    content_type, body = build_batch(records)
    headers = {"Ocp-Apim-Subscription-Key": key, "Authorization": f"Bearer {token}", "Content-Type": content_type}
    reply = post(f"{url.rstrip('/')}/$batch", headers, body)
    if reply.status_code != 200:
        sys.exit(f"refused as a whole: {reply.status_code} {reply.text}")
    parts = list(read_parts(reply.headers["Content-Type"], reply.content))
    for number, (status, answer) in enumerate(parts, 1):
        codes = [error["ErrorCode"] for error in answer] if isinstance(answer, list) else []
        print(number, status, *codes)
    if len(parts) != len(records):
        sys.exit(f"{len(records)} records, {len(parts)} answers: look up what was written")
    return 0 if all(status < 300 for status, _ in parts) else 1


if __name__ == "__main__":
    sys.exit(main())
