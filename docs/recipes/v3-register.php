<?php
// Posts a register of attendance marks to V3 directly, and prints a line for each record.
//
// Usage: php v3-register.php FILE. README.md describes the file, the environment and the exit status. The extension curl.

declare(strict_types=1);

function usage(string $problem): never
{
    fwrite(STDERR, "$problem\nusage: V3_URL=… V3_KEY=… V3_TOKEN=… php v3-register.php FILE\n");
    exit(2);
}

function setting(string $name): string
{
    return getenv($name) ?: usage("$name is not set");
}

/** The V3 form of a flat record. The all-zero id asks the service for a new one. */
function toV3(array $record): array
{
    $reference = fn (string $name, string $type): array => ['ExternalID' => $record[$name], 'Type' => $type];
    return [
        'ExternalID' => '00000000-0000-0000-0000-000000000000',
        'Present' => $record['Present'],
        'Absent' => $record['Absent'],
        'RecordedOn' => gmdate('Y-m-d\TH:i:s\Z'),
        'ChangeProcessName' => 'register',
        'Attendee' => $reference('Learner', 'Learner.Identifier'),
        'Event' => $reference('AttendableEvent', 'Attendance.AttendanceSession'),
        'AttendanceCode' => $reference('SchoolAttendanceCode', 'Attendance.Lookup'),
        'Qualifier' => ['MinutesLate' => $record['MinutesLate'] ?? null, 'Comment' => $record['Comment'] ?? null],
    ];
}

/** The status and the codes. V3 did not apply a record that got 429 or 503, so only such a record is sent again. */
function post(string $url, array $headers, array $record): array
{
    $repeats = getenv('V3_REPEATS');
    for ($left = $repeats === false ? 3 : (int) $repeats; ; $left--) {
        $asked = '';
        $curl = curl_init($url);
        curl_setopt_array($curl, [
            CURLOPT_POSTFIELDS => json_encode(toV3($record)),
            CURLOPT_HTTPHEADER => $headers,
            CURLOPT_TIMEOUT => 60,
            CURLOPT_RETURNTRANSFER => true,
            CURLOPT_HEADERFUNCTION => function ($curl, string $line) use (&$asked): int {
                $asked = preg_match('/^retry-after: *(\d+)/i', $line, $found) ? $found[1] : $asked;
                return strlen($line);
            },
        ]);
        $text = curl_exec($curl);
        $status = curl_getinfo($curl, CURLINFO_RESPONSE_CODE);
        if ($text === false || ($status >= 500 && $status !== 503)) {
            return ['unknown'];
        }
        if ($left === 0 || ($status !== 429 && $status !== 503)) {
            $error = $status >= 400 ? json_decode($text, true)['error'] ?? [] : [];
            return [$status, ...array_column($error['details'] ?? [$error], 'code')];
        }
        sleep((int) ($asked !== '' ? $asked : (getenv('V3_PAUSE') === false ? 1 : getenv('V3_PAUSE'))));
    }
}

[$url, $key, $token] = array_map('setting', ['V3_URL', 'V3_KEY', 'V3_TOKEN']);
$lines = is_readable($argv[1] ?? '') ? file($argv[1]) : usage('the file of records cannot be read');
$headers = ["Ocp-Apim-Subscription-Key: $key", "Authorization: Bearer $token", 'Content-Type: application/json'];
$failed = 0;
foreach (array_values(array_filter(array_map('trim', $lines))) as $index => $line) {
    $outcome = post(rtrim($url, '/') . '/AttendanceRecords', $headers, json_decode($line, true));
    echo implode(' ', [$index + 1, ...$outcome]) . "\n";
    $failed += in_array($outcome[0], [200, 201], true) ? 0 : 1;
}
exit($failed === 0 ? 0 : 1);
