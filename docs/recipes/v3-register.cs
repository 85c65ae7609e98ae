// Posts a register of attendance marks to V3 directly, and prints a line for each record.
//
// Usage: V3Register.exe FILE. README.md describes how to build it, the file, the environment and the exit status.
// .NET, .NET Framework or Mono. Nothing that all three have reads JSON: the values of a flat record are copied as text.

using System;
using System.IO;
using System.Linq;
using System.Net.Http;
using System.Net.Http.Headers;
using System.Text;
using System.Text.RegularExpressions;
using System.Threading.Tasks;

static class V3Register
{
    static Exception Usage(string problem)
    {
        return new ArgumentException(problem + "\nusage: V3_URL=… V3_KEY=… V3_TOKEN=… V3Register.exe FILE");
    }

    static string Setting(string name)
    {
        var value = Environment.GetEnvironmentVariable(name);
        if (string.IsNullOrEmpty(value)) throw Usage(name + " is not set");
        return value;
    }

    static int Number(string name, int fallback)
    {
        var text = Environment.GetEnvironmentVariable(name);
        return text == null ? fallback : int.Parse(text);
    }

    /// <summary>The JSON text of a member of a flat record, or null.</summary>
    static string ValueOf(string record, string name)
    {
        var found = Regex.Match(record, "\"" + name + "\"\\s*:\\s*(\"(?:[^\"\\\\]|\\\\.)*\"|[^,}\\s]+)");
        return found.Success ? found.Groups[1].Value : "null";
    }

    static string Reference(string record, string name, string type)
    {
        return "{\"ExternalID\":" + ValueOf(record, name) + ",\"Type\":\"" + type + "\"}";
    }

    /// <summary>The V3 form of a flat record. The all-zero id asks the service for a new one.</summary>
    static string ToV3(string record)
    {
        return "{\"ExternalID\":\"00000000-0000-0000-0000-000000000000\",\"Present\":" + ValueOf(record, "Present")
            + ",\"Absent\":" + ValueOf(record, "Absent")
            + ",\"RecordedOn\":\"" + DateTime.UtcNow.ToString("yyyy-MM-ddTHH:mm:ssZ") + "\",\"ChangeProcessName\":\"register\""
            + ",\"Attendee\":" + Reference(record, "Learner", "Learner.Identifier")
            + ",\"Event\":" + Reference(record, "AttendableEvent", "Attendance.AttendanceSession")
            + ",\"AttendanceCode\":" + Reference(record, "SchoolAttendanceCode", "Attendance.Lookup")
            + ",\"Qualifier\":{\"MinutesLate\":" + ValueOf(record, "MinutesLate")
            + ",\"Comment\":" + ValueOf(record, "Comment") + "}}";
    }

    /// <summary>The status and the codes. V3 did not apply a record that got 429 or 503, so only such a record is sent again.</summary>
    static async Task<string> Post(HttpClient client, string url, string record)
    {
        for (var left = Number("V3_REPEATS", 3); ; left--)
        {
            HttpResponseMessage reply;
            try
            {
                reply = await client.PostAsync(url, new StringContent(ToV3(record), Encoding.UTF8, "application/json"));
            }
            catch (Exception error) when (error is HttpRequestException || error is TaskCanceledException)
            {
                return "unknown";
            }
            var status = (int)reply.StatusCode;
            if (left > 0 && (status == 429 || status == 503))
            {
                await Task.Delay(reply.Headers.RetryAfter?.Delta ?? TimeSpan.FromSeconds(Number("V3_PAUSE", 1)));
                continue;
            }
            if (status >= 500 && status != 503) return "unknown";
            var text = status < 400 ? "" : await reply.Content.ReadAsStringAsync();
            var codes = Regex.Matches(text, "\"code\"\\s*:\\s*\"([^\"]*)\"").Cast<Match>().Select(code => " " + code.Groups[1].Value).ToArray();
            // The details stand after the error that holds them.
            return status + string.Concat(codes.Skip(codes.Length > 1 ? 1 : 0));
        }
    }

    static async Task<int> Run(string[] args)
    {
        var url = Setting("V3_URL").TrimEnd('/') + "/AttendanceRecords";
        var client = new HttpClient { Timeout = TimeSpan.FromSeconds(60) };
        client.DefaultRequestHeaders.Add("Ocp-Apim-Subscription-Key", Setting("V3_KEY"));
        client.DefaultRequestHeaders.Authorization = new AuthenticationHeaderValue("Bearer", Setting("V3_TOKEN"));
        if (args.Length != 1 || !File.Exists(args[0])) throw Usage("the file of records cannot be read");
        var records = File.ReadAllLines(args[0]).Select(line => line.Trim()).Where(line => line != "").ToArray();
        var written = 0;
        for (var index = 0; index < records.Length; index++)
        {
            var outcome = await Post(client, url, records[index]);
            Console.WriteLine("{0} {1}", index + 1, outcome);
            if (outcome == "200" || outcome == "201") written++;
        }
        return written == records.Length ? 0 : 1;
    }

    static int Main(string[] args)
    {
        try { return Run(args).GetAwaiter().GetResult(); }
        catch (ArgumentException problem)
        {
            Console.Error.WriteLine(problem.Message);
            return 2;
        }
    }
}
