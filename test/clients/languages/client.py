# A V2 client of Python's standard library: http.client, and the email package for multipart both ways.
# Arguments: file of records (one JSON a line, the last is posted alone), learner to read, roots of the service.
import http.client
import sys
import uuid
from email.mime.multipart import MIMEMultipart
from email.mime.nonmultipart import MIMENonMultipart
from email.parser import BytesParser
from email.policy import HTTP
from urllib.parse import quote, urlsplit

KEYS = {"Ocp-Apim-Subscription-Key": "sandbox", "Authorization": "Bearer sandbox"}


def say(*words):
    sys.stdout.buffer.write((" ".join(map(str, words)) + "\n").encode())


def send(method, url, body=None, headers={}):
    address = urlsplit(url)
    connection = http.client.HTTPConnection(address.netloc, timeout=60)
    path = address.path + ("?" + address.query if address.query else "")
    connection.request(method, path, body, {**KEYS, **headers})
    reply = connection.getresponse()
    text = reply.read()
    connection.close()
    return reply.status, reply.headers, text


def to_batch(records):
    batch = MIMEMultipart("mixed", boundary="batch_%s" % uuid.uuid4(), policy=HTTP)
    changeset = MIMEMultipart("mixed", boundary="changeset_%s" % uuid.uuid4(), policy=HTTP)
    batch.attach(changeset)
    for number, record in enumerate(records, 1):
        part = MIMENonMultipart("application", "http", policy=HTTP)
        part["Content-Transfer-Encoding"] = "binary"
        part["Content-ID"] = str(number)
        text = "POST /AttendanceServiceFarm1/OData/V1/AttendanceRecords HTTP/1.1\r\n"
        text += "Content-Type: application/json;odata.metadata=minimal\r\n\r\n" + record
        part.set_payload(text.encode().decode("ascii", "surrogateescape"))
        changeset.attach(part)
    _, _, body = batch.as_bytes(policy=HTTP).partition(b"\r\n\r\n")
    return batch["Content-Type"], body


def say_parts(content_type, body):
    message = BytesParser(policy=HTTP).parsebytes(b"Content-Type: " + content_type.encode() + b"\r\n\r\n" + body)
    for part in message.walk():
        if not part.is_multipart():
            head, _, json = part.get_payload(decode=True).partition(b"\r\n\r\n")
            say("part", part["Content-ID"], head.split()[1].decode(), json.decode().strip())


path, learner, *roots = sys.argv[1:]
with open(path, encoding="utf-8") as file:
    *records, single = file.read().splitlines()
for root in roots:
    content_type, body = to_batch(records)
    while True:
        try:
            status, headers, text = send("POST", root + "$batch", body, {"Content-Type": content_type})
            break
        except (http.client.HTTPException, ConnectionError):
            say("lost")
    say("batch", status)
    say_parts(headers["Content-Type"], text)
    status, headers, text = send("POST", root + "AttendanceRecords", single.encode(), {"Content-Type": "application/json"})
    say("record", status, headers["Location"], text.decode())
    status, _, text = send("GET", headers["Location"])
    say("read", status, text.decode())
    week = "Learner eq %s and AttendableEventStart ge 2026-03-02 and AttendableEventStart lt 2026-03-09" % learner
    status, _, text = send("GET", root + "AttendanceRecords?$filter=" + quote(week))
    say("page", status, text.decode())
