<?php
// A V2 client of PHP with its curl extension.
// Arguments: file of records (one JSON a line, the last is posted alone), learner to read, roots of the service.

const KEYS = ['Ocp-Apim-Subscription-Key: sandbox', 'Authorization: Bearer sandbox'];

function uuid(): string
{
    return vsprintf('%s%s-%s-4%s-8%s-%s%s%s', str_split(substr_replace(bin2hex(random_bytes(15)), '00', 12, 0), 4));
}

/** The status, the headers by name in lower case and the body; null where the reply is lost. */
function send(string $url, ?string $body = null, array $headers = []): ?array
{
    $curl = curl_init($url);
    $found = [];
    curl_setopt_array($curl, [
        CURLOPT_RETURNTRANSFER => true,
        CURLOPT_HTTPHEADER => [...KEYS, ...$headers],
        CURLOPT_HEADERFUNCTION => function ($_, string $line) use (&$found): int {
            [$name, $value] = explode(':', $line, 2) + [1 => ''];
            $found[strtolower($name)] = trim($value);
            return strlen($line);
        },
    ]);
    if ($body !== null) {
        curl_setopt($curl, CURLOPT_POSTFIELDS, $body);
    }
    $text = curl_exec($curl);
    return $text === false ? null : [curl_getinfo($curl, CURLINFO_RESPONSE_CODE), $found, $text];
}

function toBatch(array $records): array
{
    [$batch, $changeset] = ['batch_' . uuid(), 'changeset_' . uuid()];
    $body = "--$batch\r\nContent-Type: multipart/mixed; boundary=$changeset\r\n\r\n";
    foreach ($records as $index => $record) {
        $body .= "--$changeset\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n"
            . 'Content-ID: ' . ($index + 1) . "\r\n\r\n"
            . "POST /AttendanceServiceFarm1/OData/V1/AttendanceRecords HTTP/1.1\r\n"
            . "Content-Type: application/json;odata.metadata=minimal\r\n\r\n$record\r\n";
    }
    return ["multipart/mixed; boundary=$batch", "$body--$changeset--\r\n--$batch--\r\n"];
}

function sayParts(string $contentType, string $body): void
{
    preg_match('/boundary="?([^";]+)/', $contentType, $match);
    $parts = preg_split('/^--' . preg_quote($match[1], '/') . '(?:--)?[ \t]*\r\n/m', $body);
    foreach (array_slice($parts, 1) as $part) {
        [$head, $content] = explode("\r\n\r\n", $part, 2) + [1 => null];
        if ($content === null) {
            continue;
        }
        preg_match('/^Content-Type: (.*)\r?$/mi', $head, $type);
        if (str_starts_with($type[1], 'multipart/')) {
            sayParts(trim($type[1]), $content);
            continue;
        }
        preg_match('/^Content-ID: (.*?)\r?$/mi', $head, $id);
        [$inner, $json] = explode("\r\n\r\n", $content, 2);
        echo "part {$id[1]} " . explode(' ', $inner)[1] . ' ' . trim($json) . "\n";
    }
}

[, $path, $learner] = $argv;
$records = file($path, FILE_IGNORE_NEW_LINES);
$single = array_pop($records);
foreach (array_slice($argv, 3) as $root) {
    [$contentType, $body] = toBatch($records);
    while (($reply = send($root . '$batch', $body, ["Content-Type: $contentType"])) === null) {
        echo "lost\n";
    }
    [$status, $headers, $text] = $reply;
    echo "batch $status\n";
    sayParts($headers['content-type'], $text);
    [$status, $headers, $text] = send("{$root}AttendanceRecords", $single, ['Content-Type: application/json']);
    echo "record $status {$headers['location']} $text\n";
    [$status, , $text] = send($headers['location']);
    echo "read $status $text\n";
    $week = "Learner eq $learner and AttendableEventStart ge 2026-03-02 and AttendableEventStart lt 2026-03-09";
    [$status, , $text] = send("{$root}AttendanceRecords?" . http_build_query(['$filter' => $week]));
    echo "page $status $text\n";
}
