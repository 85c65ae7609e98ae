// A V2 client of .NET: HttpClient, and its MultipartContent, which quotes boundaries.
// Arguments: file of records (one JSON a line, the last is posted alone), learner to read, roots of the service.

using System;
using System.IO;
using System.Linq;
using System.Net.Http;
using System.Net.Http.Headers;
using System.Text;
using System.Text.RegularExpressions;

static class Client
{
    static readonly HttpClient http = new HttpClient();

    static HttpResponseMessage Send(HttpMethod method, string url, byte[] body = null, string type = null)
    {
        var request = new HttpRequestMessage(method, url);
        request.Headers.Add("Ocp-Apim-Subscription-Key", "sandbox");
        request.Headers.Authorization = new AuthenticationHeaderValue("Bearer", "sandbox");
        if (body != null)
        {
            request.Content = new ByteArrayContent(body);
            request.Content.Headers.ContentType = MediaTypeHeaderValue.Parse(type);
        }
        return http.SendAsync(request).GetAwaiter().GetResult();
    }

    static string TextOf(HttpResponseMessage reply)
    {
        return Encoding.UTF8.GetString(reply.Content.ReadAsByteArrayAsync().GetAwaiter().GetResult());
    }

    static MultipartContent ToBatch(string[] records)
    {
        var changeset = new MultipartContent("mixed", "changeset_" + Guid.NewGuid());
        for (var index = 0; index < records.Length; index++)
        {
            var text = "POST /AttendanceServiceFarm1/OData/V1/AttendanceRecords HTTP/1.1\r\n"
                + "Content-Type: application/json;odata.metadata=minimal\r\n\r\n" + records[index];
            var part = new ByteArrayContent(Encoding.UTF8.GetBytes(text));
            part.Headers.ContentType = new MediaTypeHeaderValue("application/http");
            part.Headers.Add("Content-Transfer-Encoding", "binary");
            part.Headers.Add("Content-ID", (index + 1).ToString());
            changeset.Add(part);
        }
        return new MultipartContent("mixed", "batch_" + Guid.NewGuid()) { changeset };
    }

    static void SayParts(TextWriter say, string contentType, string body)
    {
        var boundary = Regex.Escape(Regex.Match(contentType, "boundary=\"?([^\";]+)").Groups[1].Value);
        foreach (var part in Regex.Split("\r\n" + body, "\r\n--" + boundary + "(?:--)?[ \t]*(?=\r\n|$)").Skip(1))
        {
            var end = part.IndexOf("\r\n\r\n", StringComparison.Ordinal);
            if (end < 0) continue;
            var head = part.Substring(0, end);
            var content = part.Substring(end + 4);
            var type = Regex.Match(head, "Content-Type: ([^\r]*)").Groups[1].Value;
            if (type.StartsWith("multipart/"))
            {
                SayParts(say, type, content);
                continue;
            }
            var bodyStart = content.IndexOf("\r\n\r\n", StringComparison.Ordinal);
            say.WriteLine("part {0} {1} {2}", Regex.Match(head, "Content-ID: ([^\r]*)").Groups[1].Value,
                content.Split(' ')[1], content.Substring(bodyStart).Trim());
        }
    }

    static void Main(string[] args)
    {
        var say = new StreamWriter(Console.OpenStandardOutput(), new UTF8Encoding(false)) { AutoFlush = true };
        var lines = File.ReadAllLines(args[0]);
        var single = Encoding.UTF8.GetBytes(lines.Last());
        foreach (var root in args.Skip(2))
        {
            var batch = ToBatch(lines.Take(lines.Length - 1).ToArray());
            var body = batch.ReadAsByteArrayAsync().GetAwaiter().GetResult();
            HttpResponseMessage reply = null;
            while (reply == null)
            {
                try { reply = Send(HttpMethod.Post, root + "$batch", body, batch.Headers.ContentType.ToString()); }
                catch (HttpRequestException) { say.WriteLine("lost"); }
            }
            say.WriteLine("batch {0}", (int)reply.StatusCode);
            SayParts(say, reply.Content.Headers.ContentType.ToString(), TextOf(reply));
            reply = Send(HttpMethod.Post, root + "AttendanceRecords", single, "application/json");
            var address = reply.Headers.Location;
            say.WriteLine("record {0} {1} {2}", (int)reply.StatusCode, address, TextOf(reply));
            reply = Send(HttpMethod.Get, address.OriginalString);
            say.WriteLine("read {0} {1}", (int)reply.StatusCode, TextOf(reply));
            var week = "Learner eq " + args[1] + " and AttendableEventStart ge 2026-03-02 and AttendableEventStart lt 2026-03-09";
            reply = Send(HttpMethod.Get, root + "AttendanceRecords?$filter=" + Uri.EscapeDataString(week));
            say.WriteLine("page {0} {1}", (int)reply.StatusCode, TextOf(reply));
        }
    }
}
