<?php
// Posts a register of attendance marks as one V2 $batch, and prints a line for each record.
//
// Usage: php post-register.php FILE. README.md describes the file, the environment and the exit status.
// The extensions curl and mailparse, which reads multipart (Debian: php-curl php-mailparse). PHP has none that writes it.

declare(strict_types=1);

/** Matches a reply of Markbridge or V2. Any other reply, such as a load balancer's page, says nothing about the batch. */
const OWN = '/^[34]..\s*[{[]|batchresponse_|"ADP_/';
/** After any other answer, such as a part with V2's own 503, V2 could write the batch twice, or nothing would change. */
const REPEATABLE = '/^503|^504.*"ADP_(OUTCOME_UNKNOWN|JOURNAL_LOST)"'
    . '|^200.*"ErrorCode":"ADP_(UPSTREAM_UNAVAILABLE|JOURNAL_UNAVAILABLE|BUDGET_EXCEEDED|OVERLOADED|OUTCOME_UNKNOWN)"/s';

function fail(int $status, string $problem): never
{
    fwrite(STDERR, "$problem\n");
    exit($status);
}

function usage(string $problem): never
{
    fail(2, "$problem\nusage: V2_URL=… V2_KEY=… V2_TOKEN=… php post-register.php FILE");
}

function setting(string $name): string
{
    return getenv($name) ?: usage("$name is not set");
}

/** The Content-Type and the body. Batch and changeset share the id, which the header must have. */
function buildBatch(array $records): array
{
    $id = vsprintf('%s%s-%s-%s-%s-%s%s%s', str_split(bin2hex(random_bytes(16)), 4));
    $body = "--batch_$id\r\nContent-Type: multipart/mixed; boundary=changeset_$id\r\n\r\n";
    foreach ($records as $index => $record) {
        $body .= "--changeset_$id\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n"
            . 'Content-ID: ' . ($index + 1) . "\r\n\r\n"
            . "POST /AttendanceServiceFarm1/OData/V1/AttendanceRecords HTTP/1.1\r\n"
            . "Content-Type: application/json;odata.metadata=minimal\r\nPrefer: return=representation\r\n\r\n$record\r\n";
    }
    return ["multipart/mixed; boundary=batch_$id", "$body--changeset_$id--\r\n--batch_$id--\r\n"];
}

/** Returns the status, the headers by name in lower case, and the body, or null without a whole answer of Markbridge or V2. */
function post(string $url, array $headers, string $body): ?array
{
    $found = [];
    $curl = curl_init($url);
    curl_setopt_array($curl, [
        CURLOPT_POSTFIELDS => $body,
        CURLOPT_HTTPHEADER => $headers,
        CURLOPT_TIMEOUT => 120,
        CURLOPT_RETURNTRANSFER => true,
        CURLOPT_HEADERFUNCTION => function ($curl, string $line) use (&$found): int {
            [$name, $value] = explode(':', $line, 2) + [1 => ''];
            $found[strtolower($name)] = trim($value);
            return strlen($line);
        },
    ]);
    $text = curl_exec($curl);
    $status = curl_getinfo($curl, CURLINFO_RESPONSE_CODE);
    return $text === false || !preg_match(OWN, $status . $text) ? null : [$status, $found, $text];
}

/** Repeats the same bytes. With others, or another boundary, it would be another batch, and its marks would be written again. */
function postUntilAnswered(string $url, array $headers, string $body): array
{
    // Set V2_REPEATS=0 where V2 serves, because V2 does not recognise a repeated batch.
    $repeats = getenv('V2_REPEATS');
    for ($left = $repeats === false ? 3 : (int) $repeats; ; $left--) {
        $reply = post($url, $headers, $body);
        if ($reply === null && $left === 0) {
            fail(1, 'no answer: look up what was written before you post again');
        }
        if ($reply !== null && ($left === 0 || !preg_match(REPEATABLE, $reply[0] . $reply[2]))) {
            return $reply;
        }
        $asked = $reply[1]['retry-after'] ?? '';
        $pause = getenv('V2_PAUSE');
        sleep((int) (ctype_digit($asked) ? $asked : ($pause === false ? 10 : $pause)));
    }
}

/** The status and the codes of each part, in the order of the records, of flat and nested replies alike. */
function readParts(string $contentType, string $body): array
{
    $text = "MIME-Version: 1.0\r\nContent-Type: $contentType\r\n\r\n$body";
    $message = mailparse_msg_create();
    mailparse_msg_parse($message, $text);
    $parts = [];
    foreach (mailparse_msg_get_structure($message) as $name) {
        $part = mailparse_msg_get_part_data(mailparse_msg_get_part($message, $name));
        if ($part['content-type'] === 'application/http') {
            $reply = substr($text, $part['starting-pos-body'], $part['ending-pos-body'] - $part['starting-pos-body']);
            preg_match_all('/"ErrorCode":"([^"]*)"/', $reply, $codes);
            $parts[] = [(int) explode(' ', $reply, 3)[1], $codes[1]];
        }
    }
    return $parts;
}

[$url, $key, $token] = array_map('setting', ['V2_URL', 'V2_KEY', 'V2_TOKEN']);
$lines = is_readable($argv[1] ?? '') ? file($argv[1]) : usage('the file of records cannot be read');
$records = array_values(array_filter(array_map('trim', $lines)));
if ($records === []) {
    usage('there are no records');
}
[$contentType, $body] = buildBatch($records);
$headers = ["Ocp-Apim-Subscription-Key: $key", "Authorization: Bearer $token", "Content-Type: $contentType"];
[$status, $found, $text] = postUntilAnswered(rtrim($url, '/') . '/$batch', $headers, $body);
if ($status !== 200) {
    fail(1, "refused as a whole: $status $text");
}
$parts = readParts($found['content-type'], $text);
foreach ($parts as $index => [$status, $codes]) {
    echo implode(' ', [$index + 1, $status, ...$codes]) . "\n";
}
if (count($parts) !== count($records)) {
    fail(1, count($records) . ' records, ' . count($parts) . ' answers: look up what was written');
}
exit(max(array_column($parts, 0)) < 300 ? 0 : 1);
