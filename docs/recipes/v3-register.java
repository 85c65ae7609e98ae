// Posts a register of attendance marks to V3 directly, and prints a line for each record.
//
// Usage: java v3-register.java FILE. README.md describes the file, the environment and the exit status.
// Only the standard library, which cannot read JSON: the values of a flat record are copied as text.

import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;

class V3Register {
  static void usage(String problem) {
    System.err.println(problem + "\nusage: V3_URL=… V3_KEY=… V3_TOKEN=… java v3-register.java FILE");
    System.exit(2);
  }

  static String setting(String name) {
    String value = System.getenv().getOrDefault(name, "");
    if (value.isEmpty()) usage(name + " is not set");
    return value;
  }

  static int number(String name, String fallback) {
    return Integer.parseInt(System.getenv().getOrDefault(name, fallback));
  }

  /** The JSON text of a member of a flat record, or null. */
  static String valueOf(String record, String name) {
    Matcher found = Pattern.compile("\"" + name + "\"\\s*:\\s*(\"(?:[^\"\\\\]|\\\\.)*\"|[^,}\\s]+)").matcher(record);
    return found.find() ? found.group(1) : "null";
  }

  static String reference(String record, String name, String type) {
    return "{\"ExternalID\":" + valueOf(record, name) + ",\"Type\":\"" + type + "\"}";
  }

  /** The V3 form of a flat record. The all-zero id asks the service for a new one. */
  static String toV3(String record) {
    return "{\"ExternalID\":\"00000000-0000-0000-0000-000000000000\",\"Present\":" + valueOf(record, "Present")
        + ",\"Absent\":" + valueOf(record, "Absent")
        + ",\"RecordedOn\":\"" + Instant.now().truncatedTo(ChronoUnit.SECONDS) + "\",\"ChangeProcessName\":\"register\""
        + ",\"Attendee\":" + reference(record, "Learner", "Learner.Identifier")
        + ",\"Event\":" + reference(record, "AttendableEvent", "Attendance.AttendanceSession")
        + ",\"AttendanceCode\":" + reference(record, "SchoolAttendanceCode", "Attendance.Lookup")
        + ",\"Qualifier\":{\"MinutesLate\":" + valueOf(record, "MinutesLate")
        + ",\"Comment\":" + valueOf(record, "Comment") + "}}";
  }

  /** The status and the codes. V3 did not apply a record that got 429 or 503, so only such a record is sent again. */
  static String post(HttpClient client, HttpRequest request) throws InterruptedException {
    for (int left = number("V3_REPEATS", "3");; left -= 1) {
      HttpResponse<String> reply;
      try {
        reply = client.send(request, HttpResponse.BodyHandlers.ofString());
      } catch (IOException error) {
        return "unknown";
      }
      int status = reply.statusCode();
      if (left > 0 && (status == 429 || status == 503)) {
        String asked = reply.headers().firstValue("Retry-After").filter(text -> text.matches("[0-9]+")).orElse(null);
        Thread.sleep(Duration.ofSeconds(asked == null ? number("V3_PAUSE", "1") : Integer.parseInt(asked)).toMillis());
        continue;
      }
      if (status >= 500 && status != 503) return "unknown";
      List<String> codes = status < 400 ? List.of() : Pattern.compile("\"code\"\\s*:\\s*\"([^\"]*)\"").matcher(reply.body())
          .results().map(code -> code.group(1)).toList();
      // The details stand after the error that holds them.
      return status + codes.stream().skip(codes.size() > 1 ? 1 : 0).map(code -> " " + code).collect(Collectors.joining());
    }
  }

  public static void main(String[] args) throws InterruptedException {
    HttpRequest.Builder builder = HttpRequest.newBuilder(URI.create(setting("V3_URL").replaceFirst("/?$", "/AttendanceRecords")))
        .header("Ocp-Apim-Subscription-Key", setting("V3_KEY"))
        .header("Authorization", "Bearer " + setting("V3_TOKEN"))
        .header("Content-Type", "application/json")
        .timeout(Duration.ofSeconds(60));
    List<String> records = List.of();
    try {
      records = Files.readAllLines(Path.of(args[0])).stream().map(String::strip).filter(line -> !line.isEmpty()).toList();
    } catch (IOException | ArrayIndexOutOfBoundsException error) {
      usage("the file of records cannot be read");
    }
    HttpClient client = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();
    int written = 0;
    for (int index = 0; index < records.size(); index += 1) {
      String body = toV3(records.get(index));
      String outcome = post(client, builder.copy().POST(HttpRequest.BodyPublishers.ofString(body)).build());
      System.out.println(index + 1 + " " + outcome);
      if (outcome.matches("20[01]")) written += 1;
    }
    System.exit(written == records.size() ? 0 : 1);
  }
}
