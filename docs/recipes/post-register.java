// Posts a register of attendance marks as one V2 $batch, and prints a line for each record.
//
// Usage: java -cp jakarta-mail.jar:jakarta-activation.jar post-register.java FILE
// README.md describes the file, the environment and the exit status.
// java.net.http posts, Jakarta Mail 2 writes and reads multipart (Debian: libjakarta-mail-java).

import jakarta.activation.DataHandler;
import jakarta.mail.BodyPart;
import jakarta.mail.MessagingException;
import jakarta.mail.Multipart;
import jakarta.mail.internet.MimeBodyPart;
import jakarta.mail.internet.MimeMultipart;
import jakarta.mail.util.ByteArrayDataSource;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.UUID;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

class PostRegister {
  /** Set V2_REPEATS=0 where V2 serves, because V2 does not recognise a repeated batch. */
  static final int REPEATS = Integer.parseInt(System.getenv().getOrDefault("V2_REPEATS", "3"));
  /** Matches a reply of Markbridge or V2. Any other reply, such as a load balancer's page, says nothing about the batch. */
  static final Pattern OWN = Pattern.compile("^[34]..\\s*[\\[{]|batchresponse_|\"ADP_");
  /** After any other answer, such as a part with V2's own 503, V2 could write the batch twice, or nothing would change. */
  static final Pattern REPEATABLE = Pattern.compile("503.*|504.*\"ADP_(OUTCOME_UNKNOWN|JOURNAL_LOST)\".*"
      + "|200.*\"ErrorCode\":\"ADP_(UPSTREAM_UNAVAILABLE|JOURNAL_UNAVAILABLE|BUDGET_EXCEEDED|OVERLOADED|OUTCOME_UNKNOWN)\".*", Pattern.DOTALL);

  record Part(int status, List<String> codes) {}

  /** Jakarta Mail chooses boundaries of its own; the service wants the id of batch and changeset in the header. */
  static class Named extends MimeMultipart {
    Named(String boundary) {
      contentType = "multipart/mixed; boundary=" + boundary;
    }
  }

  static Multipart buildBatch(List<String> records) throws MessagingException, IOException {
    UUID id = UUID.randomUUID();
    Multipart changeset = new Named("changeset_" + id);
    for (String record : records) {
      String request = "POST /AttendanceServiceFarm1/OData/V1/AttendanceRecords HTTP/1.1\r\n"
          + "Content-Type: application/json;odata.metadata=minimal\r\nPrefer: return=representation\r\n\r\n" + record;
      MimeBodyPart part = new MimeBodyPart();
      byte[] bytes = request.getBytes(StandardCharsets.UTF_8);
      part.setDataHandler(new DataHandler(new ByteArrayDataSource(bytes, "application/http")));
      part.setHeader("Content-Type", "application/http");
      part.setHeader("Content-Transfer-Encoding", "binary");
      part.setHeader("Content-ID", String.valueOf(changeset.getCount() + 1));
      changeset.addBodyPart(part);
    }
    MimeBodyPart within = new MimeBodyPart();
    within.setContent(changeset);
    within.setHeader("Content-Type", changeset.getContentType());
    Multipart batch = new Named("batch_" + id);
    batch.addBodyPart(within);
    return batch;
  }

  /** Repeats the same bytes. With others, or another boundary, it would be another batch, and its marks would be written again. */
  static HttpResponse<byte[]> postUntilAnswered(HttpRequest request) throws InterruptedException {
    HttpClient client = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();
    for (int left = REPEATS;; left -= 1) {
      String pause = System.getenv().getOrDefault("V2_PAUSE", "10");
      try {
        HttpResponse<byte[]> reply = client.send(request, HttpResponse.BodyHandlers.ofByteArray());
        if (!OWN.matcher(reply.statusCode() + textOf(reply)).find()) throw new IOException();
        if (left == 0 || !REPEATABLE.matcher(reply.statusCode() + textOf(reply)).matches()) return reply;
        pause = reply.headers().firstValue("Retry-After").filter(asked -> asked.matches("[0-9]+")).orElse(pause);
      } catch (IOException error) {
        if (left == 0) fail(1, "no answer (" + error.getClass().getName() + "): look up what was written before you post again");
      }
      Thread.sleep(Duration.ofSeconds(Integer.parseInt(pause)).toMillis());
    }
  }

  static String textOf(HttpResponse<byte[]> reply) {
    return new String(reply.body(), StandardCharsets.UTF_8);
  }

  /** The parts in the order of the records, of flat and nested replies alike. */
  static List<Part> readParts(Multipart multipart) throws MessagingException, IOException {
    List<Part> parts = new ArrayList<>();
    for (int index = 0; index < multipart.getCount(); index += 1) {
      BodyPart part = multipart.getBodyPart(index);
      if (part.isMimeType("multipart/*")) {
        parts.addAll(readParts((Multipart) part.getContent()));
        continue;
      }
      String reply = new String(part.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
      List<String> codes = new ArrayList<>();
      Matcher code = Pattern.compile("\"ErrorCode\":\"([^\"]*)\"").matcher(reply);
      while (code.find()) codes.add(code.group(1));
      parts.add(new Part(Integer.parseInt(reply.split(" ", 3)[1]), codes));
    }
    return parts;
  }

  static void fail(int status, String problem) {
    System.err.println(problem);
    System.exit(status);
  }

  static void usage(String problem) {
    fail(2, problem + "\nusage: V2_URL=… V2_KEY=… V2_TOKEN=… java post-register.java FILE");
  }

  static String setting(String name) {
    String value = System.getenv().getOrDefault(name, "");
    if (value.isEmpty()) usage(name + " is not set");
    return value;
  }

  static List<String> readRecords(String[] args) {
    List<String> records = List.of();
    try {
      records = Files.readAllLines(Path.of(args[0])).stream().map(String::strip).filter(line -> !line.isEmpty()).toList();
    } catch (IOException | ArrayIndexOutOfBoundsException error) {
      usage("the file of records cannot be read");
    }
    if (records.isEmpty()) usage("there are no records");
    return records;
  }

  public static void main(String[] args) throws MessagingException, IOException, InterruptedException {
    HttpRequest.Builder request = HttpRequest.newBuilder(URI.create(setting("V2_URL").replaceFirst("/?$", "/\\$batch")))
        .header("Ocp-Apim-Subscription-Key", setting("V2_KEY"))
        .header("Authorization", "Bearer " + setting("V2_TOKEN"))
        .timeout(Duration.ofSeconds(120));
    List<String> records = readRecords(args);
    Multipart batch = buildBatch(records);
    ByteArrayOutputStream body = new ByteArrayOutputStream();
    batch.writeTo(body);
    HttpResponse<byte[]> reply = postUntilAnswered(request
        .header("Content-Type", batch.getContentType())
        .POST(HttpRequest.BodyPublishers.ofByteArray(body.toByteArray()))
        .build());
    if (reply.statusCode() != 200) fail(1, "refused as a whole: " + reply.statusCode() + " " + textOf(reply));
    String type = reply.headers().firstValue("Content-Type").orElse("");
    List<Part> parts = readParts(new MimeMultipart(new ByteArrayDataSource(reply.body(), type)));
    for (int index = 0; index < parts.size(); index += 1) {
      Part part = parts.get(index);
      System.out.println((index + 1 + " " + part.status() + " " + String.join(" ", part.codes())).strip());
    }
    if (parts.size() != records.size())
      fail(1, records.size() + " records, " + parts.size() + " answers: look up what was written");
    System.exit(parts.stream().allMatch(part -> part.status() < 300) ? 0 : 1);
  }
}
