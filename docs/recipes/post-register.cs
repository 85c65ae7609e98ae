// Posts a register of attendance marks as one V2 $batch, and prints a line for each record.
//
// Usage: PostRegister.exe FILE. README.md describes how to build it, the file, the environment and the exit status.
// .NET, .NET Framework or Mono. MultipartContent writes multipart. Nothing that all three have reads it, and
// ReadAsMultipartAsync of Microsoft.AspNet.WebApi.Client does not read a batch within a batch (README.md), so it is split here.

using System;
using System.Collections.Generic;
using System.IO;
using System.Linq;
using System.Net.Http;
using System.Net.Http.Headers;
using System.Text;
using System.Text.RegularExpressions;
using System.Threading.Tasks;

static class PostRegister
{
    /// <summary>Set V2_REPEATS=0 where V2 serves, because V2 does not recognise a repeated batch.</summary>
    static readonly int Repeats = int.Parse(Environment.GetEnvironmentVariable("V2_REPEATS") ?? "3");

    /// <summary>Matches a reply of Markbridge or V2. Any other reply, such as a load balancer's page, says nothing about the batch.</summary>
    static readonly Regex Own = new Regex("^[34]..\\s*[{[]|batchresponse_|\"ADP_");

    /// <summary>After any other answer, such as a part with V2's own 503, V2 could write the batch twice, or nothing would change.</summary>
    static readonly Regex Repeatable = new Regex("^503|^504.*\"ADP_(OUTCOME_UNKNOWN|JOURNAL_LOST)\""
        + "|^200.*\"ErrorCode\":\"ADP_(UPSTREAM_UNAVAILABLE|JOURNAL_UNAVAILABLE|BUDGET_EXCEEDED|OVERLOADED|OUTCOME_UNKNOWN)\"", RegexOptions.Singleline);

    /// <summary>A problem that ends the program with its status.</summary>
    class Failure : Exception
    {
        public readonly int Status;
        public Failure(int status, string message) : base(message) { Status = status; }
    }

    static Failure Usage(string problem)
    {
        return new Failure(2, problem + "\nusage: V2_URL=… V2_KEY=… V2_TOKEN=… PostRegister.exe FILE");
    }

    static string Setting(string name)
    {
        var value = Environment.GetEnvironmentVariable(name);
        if (string.IsNullOrEmpty(value)) throw Usage(name + " is not set");
        return value;
    }

    static string[] ReadRecords(string[] args)
    {
        if (args.Length != 1 || !File.Exists(args[0])) throw Usage("the file of records cannot be read");
        var records = File.ReadAllLines(args[0]).Select(line => line.Trim()).Where(line => line != "").ToArray();
        if (records.Length == 0) throw Usage("there are no records");
        return records;
    }

    /// <summary>Batch and changeset share the id, which the header must have.</summary>
    static MultipartContent BuildBatch(IEnumerable<string> records)
    {
        var id = Guid.NewGuid();
        var changeset = new MultipartContent("mixed", "changeset_" + id);
        foreach (var record in records)
        {
            var request = "POST /AttendanceServiceFarm1/OData/V1/AttendanceRecords HTTP/1.1\r\n"
                + "Content-Type: application/json;odata.metadata=minimal\r\nPrefer: return=representation\r\n\r\n" + record;
            var part = new ByteArrayContent(Encoding.UTF8.GetBytes(request));
            part.Headers.ContentType = new MediaTypeHeaderValue("application/http");
            part.Headers.Add("Content-Transfer-Encoding", "binary");
            part.Headers.Add("Content-ID", (changeset.Count() + 1).ToString());
            changeset.Add(part);
        }
        return new MultipartContent("mixed", "batch_" + id) { changeset };
    }

    /// <summary>
    /// Repeats the same bytes. With others, or another boundary, it would be another batch, and its marks would be written again.
    /// </summary>
    static async Task<HttpResponseMessage> PostUntilAnswered(string url, byte[] body, MediaTypeHeaderValue type)
    {
        var client = new HttpClient { Timeout = TimeSpan.FromSeconds(120) };
        client.DefaultRequestHeaders.Add("Ocp-Apim-Subscription-Key", Setting("V2_KEY"));
        client.DefaultRequestHeaders.Authorization = new AuthenticationHeaderValue("Bearer", Setting("V2_TOKEN"));
        for (var left = Repeats; ; left--)
        {
            var pause = TimeSpan.FromSeconds(int.Parse(Environment.GetEnvironmentVariable("V2_PAUSE") ?? "10"));
            try
            {
                // A content is sent once, so each repeat has its own, of the same bytes.
                var content = new ByteArrayContent(body);
                content.Headers.ContentType = type;
                var reply = await client.PostAsync(url, content);
                var answer = (int)reply.StatusCode + await reply.Content.ReadAsStringAsync();
                if (!Own.IsMatch(answer)) throw new HttpRequestException();
                if (left == 0 || !Repeatable.IsMatch(answer)) return reply;
                pause = reply.Headers.RetryAfter?.Delta ?? pause;
            }
            catch (Exception error) when (error is HttpRequestException || error is TaskCanceledException)
            {
                if (left == 0)
                    throw new Failure(1, "no answer (" + error.GetType() + "): look up what was written before you post again");
            }
            await Task.Delay(pause);
        }
    }

    /// <summary>The replies, as text, in the order of the records, of flat and nested batches alike.</summary>
    static IEnumerable<string> ReadParts(string contentType, string body)
    {
        var boundary = MediaTypeHeaderValue.Parse(contentType).Parameters.First(parameter => parameter.Name == "boundary").Value;
        var delimiter = new Regex("\r\n--" + Regex.Escape(boundary.Trim('"')) + "(?:--)?[ \t]*(?=\r\n|$)");
        foreach (var part in delimiter.Split("\r\n" + body).Skip(1))
        {
            var pieces = Regex.Split(part, "\r\n\r\n");
            var type = Regex.Match(pieces[0], "^Content-Type: ([^\r]*)", RegexOptions.IgnoreCase | RegexOptions.Multiline).Groups[1].Value;
            var content = string.Join("\r\n\r\n", pieces.Skip(1));
            if (type.StartsWith("multipart/"))
                foreach (var inner in ReadParts(type, content)) yield return inner;
            else if (type != "") yield return content;
        }
    }

    static async Task<int> Run(string[] args)
    {
        var url = Setting("V2_URL").TrimEnd('/') + "/$batch";
        Setting("V2_KEY");
        Setting("V2_TOKEN");
        var records = ReadRecords(args);
        var batch = BuildBatch(records);
        var reply = await PostUntilAnswered(url, await batch.ReadAsByteArrayAsync(), batch.Headers.ContentType);
        if ((int)reply.StatusCode != 200)
            throw new Failure(1, "refused as a whole: " + (int)reply.StatusCode + " " + await reply.Content.ReadAsStringAsync());
        var parts = ReadParts(reply.Content.Headers.ContentType.ToString(), await reply.Content.ReadAsStringAsync()).ToArray();
        var failed = 0;
        for (var index = 0; index < parts.Length; index++)
        {
            var status = parts[index].Split(' ')[1];
            var codes = Regex.Matches(parts[index], "\"ErrorCode\":\"([^\"]*)\"").Cast<Match>().Select(code => " " + code.Groups[1].Value);
            Console.WriteLine("{0} {1}{2}", index + 1, status, string.Concat(codes));
            if (!status.StartsWith("2")) failed++;
        }
        if (parts.Length != records.Length)
            throw new Failure(1, records.Length + " records, " + parts.Length + " answers: look up what was written");
        return failed == 0 ? 0 : 1;
    }

    static int Main(string[] args)
    {
        try { return Run(args).GetAwaiter().GetResult(); }
        catch (Failure failure)
        {
            Console.Error.WriteLine(failure.Message);
            return failure.Status;
        }
    }
}
