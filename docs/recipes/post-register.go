// Posts a register of attendance marks as one V2 $batch, and prints a line for each record.
//
// Usage: go run post-register.go FILE. README.md describes the file, the environment and the exit status.
// The standard library only: mime/multipart writes and reads multipart, net/http reads the reply inside each part.
package main

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Set V2_REPEATS=0 where V2 serves, because V2 does not recognise a repeated batch.
var repeats = number("V2_REPEATS", 3)

// Matches a reply of Markbridge or V2. Any other reply, such as a load balancer's page, says nothing about the batch.
var own = regexp.MustCompile(`^[34]..\s*[{[]|batchresponse_|"ADP_`)

// After any other answer, such as a part with V2's own 503, V2 could write the batch twice, or nothing would change.
var repeatable = regexp.MustCompile(`(?s)^503|^504.*"ADP_(OUTCOME_UNKNOWN|JOURNAL_LOST)"` +
	`|^200.*"ErrorCode":"ADP_(UPSTREAM_UNAVAILABLE|JOURNAL_UNAVAILABLE|BUDGET_EXCEEDED|OVERLOADED|OUTCOME_UNKNOWN)"`)

type part struct {
	status int
	codes  []string
}

func fail(status int, format string, values ...any) {
	fmt.Fprintf(os.Stderr, format+"\n", values...)
	os.Exit(status)
}

func setting(name string) string {
	value := os.Getenv(name)
	if value == "" {
		usage(name + " is not set")
	}
	return value
}

func number(name string, fallback int) int {
	if value, err := strconv.Atoi(os.Getenv(name)); err == nil {
		return value
	}
	return fallback
}

func usage(problem string) {
	fail(2, "%s\nusage: V2_URL=… V2_KEY=… V2_TOKEN=… post-register FILE", problem)
}

func readRecords() []string {
	if len(os.Args) != 2 {
		usage("name the file of records")
	}
	text, err := os.ReadFile(os.Args[1])
	if err != nil {
		usage("the file of records cannot be read")
	}
	var records []string
	for _, line := range strings.Split(string(text), "\n") {
		if line = strings.TrimSpace(line); line != "" {
			records = append(records, line)
		}
	}
	if len(records) == 0 {
		usage("there are no records")
	}
	return records
}

// buildBatch returns the Content-Type and the body. Batch and changeset share the id, which the header must have.
// Nothing fails here: the body is in memory.
func buildBatch(records []string) (string, []byte) {
	random := make([]byte, 16)
	_, _ = rand.Read(random)
	id := fmt.Sprintf("%x-%x-%x-%x-%x", random[:4], random[4:6], random[6:8], random[8:10], random[10:])
	var body bytes.Buffer
	batch := multipart.NewWriter(&body)
	_ = batch.SetBoundary("batch_" + id)
	within, _ := batch.CreatePart(textproto.MIMEHeader{"Content-Type": {"multipart/mixed; boundary=changeset_" + id}})
	changeset := multipart.NewWriter(within)
	_ = changeset.SetBoundary("changeset_" + id)
	for index, record := range records {
		request, _ := changeset.CreatePart(textproto.MIMEHeader{
			"Content-Type":              {"application/http"},
			"Content-Transfer-Encoding": {"binary"},
			"Content-Id":                {strconv.Itoa(index + 1)},
		})
		fmt.Fprintf(request, "POST /AttendanceServiceFarm1/OData/V1/AttendanceRecords HTTP/1.1\r\n"+
			"Content-Type: application/json;odata.metadata=minimal\r\nPrefer: return=representation\r\n\r\n%s", record)
	}
	changeset.Close()
	batch.Close()
	return "multipart/mixed; boundary=batch_" + id, body.Bytes()
}

func post(headers http.Header, body []byte) (*http.Response, string, error) {
	request, err := http.NewRequest("POST", strings.TrimRight(setting("V2_URL"), "/")+"/$batch", bytes.NewReader(body))
	if err != nil {
		return nil, "", err
	}
	request.Header = headers
	client := http.Client{Timeout: 120 * time.Second}
	reply, err := client.Do(request)
	if err != nil {
		return nil, "", err
	}
	defer reply.Body.Close()
	text, err := io.ReadAll(reply.Body)
	if err == nil && !own.MatchString(fmt.Sprint(reply.StatusCode, string(text))) {
		err = fmt.Errorf("HTTP %d", reply.StatusCode)
	}
	return reply, string(text), err
}

// postUntilAnswered repeats the same bytes. With others, or another boundary, it would be another batch, and its marks
// would be written again.
func postUntilAnswered(headers http.Header, body []byte) (*http.Response, string) {
	for left := repeats; ; left-- {
		pause := number("V2_PAUSE", 10)
		reply, text, err := post(headers, body)
		if err != nil && left == 0 {
			fail(1, "no answer (%v): look up what was written before you post again", err)
		}
		if err == nil {
			if left == 0 || !repeatable.MatchString(fmt.Sprint(reply.StatusCode, text)) {
				return reply, text
			}
			if asked, err := strconv.Atoi(reply.Header.Get("Retry-After")); err == nil {
				pause = asked
			}
		}
		time.Sleep(time.Duration(pause) * time.Second)
	}
}

// readParts returns the parts in the order of the records, of flat and nested replies alike.
func readParts(contentType string, body io.Reader) ([]part, error) {
	_, parameters, err := mime.ParseMediaType(contentType)
	if err != nil {
		return nil, err
	}
	var parts []part
	reader := multipart.NewReader(body, parameters["boundary"])
	for {
		next, err := reader.NextRawPart()
		if err == io.EOF {
			return parts, nil
		}
		if err != nil {
			return parts, err
		}
		if kind := next.Header.Get("Content-Type"); strings.HasPrefix(kind, "multipart/") {
			inner, err := readParts(kind, next)
			parts = append(parts, inner...)
			if err != nil {
				return parts, err
			}
			continue
		}
		reply, err := http.ReadResponse(bufio.NewReader(next), nil)
		if err != nil {
			return parts, err
		}
		var errors []struct{ ErrorCode string }
		read := part{status: reply.StatusCode}
		if json.NewDecoder(reply.Body).Decode(&errors) == nil {
			for _, one := range errors {
				read.codes = append(read.codes, one.ErrorCode)
			}
		}
		parts = append(parts, read)
	}
}

func main() {
	headers := http.Header{
		"Ocp-Apim-Subscription-Key": {setting("V2_KEY")},
		"Authorization":             {"Bearer " + setting("V2_TOKEN")},
	}
	setting("V2_URL")
	records := readRecords()
	contentType, body := buildBatch(records)
	headers.Set("Content-Type", contentType)
	reply, text := postUntilAnswered(headers, body)
	if reply.StatusCode != 200 {
		fail(1, "refused as a whole: %d %s", reply.StatusCode, text)
	}
	parts, err := readParts(reply.Header.Get("Content-Type"), strings.NewReader(text))
	failed := 0
	for index, read := range parts {
		fmt.Println(strings.TrimSpace(fmt.Sprint(index+1, " ", read.status, " ", strings.Join(read.codes, " "))))
		if read.status >= 300 {
			failed++
		}
	}
	if err != nil || len(parts) != len(records) {
		fail(1, "%d records, %d answers: look up what was written", len(records), len(parts))
	}
	if failed > 0 {
		os.Exit(1)
	}
}
