// A V2 client of Java's standard library: java.net.http.
// Arguments: file of records (one JSON a line, the last is posted alone), learner to read, roots of the service.

import java.io.IOException;
import java.io.PrintStream;
import java.net.URI;
import java.net.URLEncoder;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.UUID;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

class Client {
  static final HttpClient http = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();
  static final PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);

  static HttpResponse<String> send(String url, String body, String type) throws IOException, InterruptedException {
    HttpRequest.Builder request = HttpRequest.newBuilder(URI.create(url))
        .header("Ocp-Apim-Subscription-Key", "sandbox")
        .header("Authorization", "Bearer sandbox");
    if (body != null) request.header("Content-Type", type).POST(HttpRequest.BodyPublishers.ofString(body));
    return http.send(request.build(), HttpResponse.BodyHandlers.ofString(StandardCharsets.UTF_8));
  }

  static String toBatch(List<String> records, String batch, String changeset) {
    StringBuilder body = new StringBuilder();
    body.append("--" + batch + "\r\nContent-Type: multipart/mixed; boundary=" + changeset + "\r\n\r\n");
    for (int index = 0; index < records.size(); index += 1) {
      body.append("--" + changeset + "\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n");
      body.append("Content-ID: " + (index + 1) + "\r\n\r\n");
      body.append("POST /AttendanceServiceFarm1/OData/V1/AttendanceRecords HTTP/1.1\r\n");
      body.append("Content-Type: application/json;odata.metadata=minimal\r\n\r\n" + records.get(index) + "\r\n");
    }
    return body + "--" + changeset + "--\r\n--" + batch + "--\r\n";
  }

  static String find(String pattern, String text) {
    Matcher matcher = Pattern.compile(pattern, Pattern.MULTILINE | Pattern.CASE_INSENSITIVE).matcher(text);
    return matcher.find() ? matcher.group(1) : "";
  }

  static void sayParts(String contentType, String body) {
    String boundary = Pattern.quote(find("boundary=\"?([^\";]+)", contentType));
    String[] parts = ("\r\n" + body).split("\r\n--" + boundary + "(?:--)?[ \t]*(?=\r\n|$)");
    for (int index = 1; index < parts.length; index += 1) {
      String[] pieces = parts[index].split("\r\n\r\n", 2);
      if (pieces.length < 2) continue;
      String type = find("^Content-Type: ([^\r]*)", pieces[0]);
      if (type.startsWith("multipart/")) {
        sayParts(type, pieces[1]);
        continue;
      }
      String[] reply = pieces[1].split("\r\n\r\n", 2);
      out.println("part " + find("^Content-ID: ([^\r]*)", pieces[0]) + " " + reply[0].split(" ")[1] + " " + reply[1].strip());
    }
  }

  public static void main(String[] args) throws IOException, InterruptedException {
    List<String> lines = Files.readAllLines(Path.of(args[0]));
    String single = lines.get(lines.size() - 1);
    for (String root : List.of(args).subList(2, args.length)) {
      String batch = "batch_" + UUID.randomUUID();
      String body = toBatch(lines.subList(0, lines.size() - 1), batch, "changeset_" + UUID.randomUUID());
      HttpResponse<String> reply = null;
      while (reply == null) {
        try {
          reply = send(root + "$batch", body, "multipart/mixed; boundary=" + batch);
        } catch (IOException lost) {
          out.println("lost");
        }
      }
      out.println("batch " + reply.statusCode());
      sayParts(reply.headers().firstValue("Content-Type").orElse(""), reply.body());
      reply = send(root + "AttendanceRecords", single, "application/json");
      String address = reply.headers().firstValue("Location").orElse("none");
      out.println("record " + reply.statusCode() + " " + address + " " + reply.body());
      reply = send(address, null, null);
      out.println("read " + reply.statusCode() + " " + reply.body());
      String week = "Learner eq " + args[1] + " and AttendableEventStart ge 2026-03-02 and AttendableEventStart lt 2026-03-09";
      reply = send(root + "AttendanceRecords?$filter=" + URLEncoder.encode(week, StandardCharsets.UTF_8), null, null);
      out.println("page " + reply.statusCode() + " " + reply.body());
    }
  }
}
