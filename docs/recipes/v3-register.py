#!/usr/bin/env python3
"""Posts a register of attendance marks to V3 directly, and prints a line for each record.

Usage: v3-register.py FILE. README.md describes the file, the environment and the exit status. Python 3 with requests.
"""

import datetime
import json
import os
import sys
import time

import requests


def to_v3(record):
    """The V3 form of a flat record. The all-zero id asks the service for a new one."""

    def reference(name, kind):
        return {"ExternalID": record[name], "Type": kind}

    return {
        "ExternalID": "00000000-0000-0000-0000-000000000000",
        "Present": record["Present"],
        "Absent": record["Absent"],
        "RecordedOn": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "ChangeProcessName": "register",
        "Attendee": reference("Learner", "Learner.Identifier"),
        "Event": reference("AttendableEvent", "Attendance.AttendanceSession"),
        "AttendanceCode": reference("SchoolAttendanceCode", "Attendance.Lookup"),
        "Qualifier": {"MinutesLate": record.get("MinutesLate"), "Comment": record.get("Comment")},
    }


def post(url, headers, record):
    """The status and the codes. V3 did not apply a record that got 429 or 503, so only such a record is sent again."""
    for left in range(int(os.environ.get("V3_REPEATS", "3")), -1, -1):
        try:
            reply = requests.post(url, json=to_v3(record), headers=headers, timeout=60)
        except requests.RequestException:
            return "unknown", []
        if reply.status_code not in (429, 503) or left == 0:
            break
        asked = reply.headers.get("Retry-After", "")
        time.sleep(int(asked if asked.isdigit() else os.environ.get("V3_PAUSE", "1")))
    if reply.status_code >= 500 and reply.status_code != 503:
        return "unknown", []
    error = reply.json().get("error", {}) if reply.status_code >= 400 else {}
    return reply.status_code, [one["code"] for one in error.get("details") or [error] if "code" in one]


def usage(problem):
    print(f"{problem}\nusage: V3_URL=… V3_KEY=… V3_TOKEN=… v3-register.py FILE", file=sys.stderr)
    sys.exit(2)


def main():
    url, key, token = (os.environ.get(name) or usage(f"{name} is not set") for name in ("V3_URL", "V3_KEY", "V3_TOKEN"))
    try:
        with open(sys.argv[1], encoding="utf-8") as file:
            records = [json.loads(line) for line in file if line.strip()]
    except (IndexError, OSError, ValueError):
        usage("the file of records cannot be read")
    headers = {"Ocp-Apim-Subscription-Key": key, "Authorization": f"Bearer {token}"}
    written = 0
    for number, record in enumerate(records, 1):
        status, codes = post(f"{url.rstrip('/')}/AttendanceRecords", headers, record)
        print(number, status, *codes)
        written += status in (200, 201)
    return 0 if written == len(records) else 1


if __name__ == "__main__":
    sys.exit(main())
