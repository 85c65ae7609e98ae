// A V2 client of Go's standard library: net/http, which also reads the reply inside each part, and mime/multipart.
// Arguments: file of records (one JSON a line, the last is posted alone), learner to read, roots of the service.
package main

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"net/url"
	"os"
	"strings"
)

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func uuid() string {
	b := make([]byte, 16)
	must(rand.Read(b))
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

func send(method, address string, body []byte, contentType string) (*http.Response, string, error) {
	request := must(http.NewRequest(method, address, bytes.NewReader(body)))
	request.Header.Set("Ocp-Apim-Subscription-Key", "sandbox")
	request.Header.Set("Authorization", "Bearer sandbox")
	if contentType != "" {
		request.Header.Set("Content-Type", contentType)
	}
	reply, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, "", err
	}
	defer reply.Body.Close()
	text, err := io.ReadAll(reply.Body)
	return reply, string(text), err
}

func toBatch(records []string) (string, []byte) {
	var body bytes.Buffer
	batch, changeset := multipart.NewWriter(&body), "changeset_"+uuid()
	must(0, batch.SetBoundary("batch_"+uuid()))
	outer := must(batch.CreatePart(textproto.MIMEHeader{"Content-Type": {"multipart/mixed; boundary=" + changeset}}))
	inner := multipart.NewWriter(outer)
	must(0, inner.SetBoundary(changeset))
	for index, record := range records {
		part := must(inner.CreatePart(textproto.MIMEHeader{
			"Content-Type":              {"application/http"},
			"Content-Transfer-Encoding": {"binary"},
			"Content-Id":                {fmt.Sprint(index + 1)},
		}))
		fmt.Fprintf(part, "POST /AttendanceServiceFarm1/OData/V1/AttendanceRecords HTTP/1.1\r\n"+
			"Content-Type: application/json;odata.metadata=minimal\r\n\r\n%s", record)
	}
	must(0, inner.Close())
	must(0, batch.Close())
	return "multipart/mixed; boundary=" + batch.Boundary(), body.Bytes()
}

func sayParts(contentType string, body io.Reader) {
	_, parameters, err := mime.ParseMediaType(contentType)
	must(0, err)
	reader := multipart.NewReader(body, parameters["boundary"])
	for {
		part, err := reader.NextRawPart()
		if err == io.EOF {
			return
		}
		must(part, err)
		if kind := part.Header.Get("Content-Type"); strings.HasPrefix(kind, "multipart/") {
			sayParts(kind, part)
			continue
		}
		reply := must(http.ReadResponse(bufio.NewReader(part), nil))
		fmt.Printf("part %s %d %s\n", part.Header.Get("Content-ID"), reply.StatusCode, must(io.ReadAll(reply.Body)))
	}
}

func main() {
	lines := strings.Split(strings.TrimSpace(string(must(os.ReadFile(os.Args[1])))), "\n")
	records, single := lines[:len(lines)-1], lines[len(lines)-1]
	for _, root := range os.Args[3:] {
		contentType, body := toBatch(records)
		reply, text, err := send("POST", root+"$batch", body, contentType)
		for ; err != nil; reply, text, err = send("POST", root+"$batch", body, contentType) {
			fmt.Println("lost")
		}
		fmt.Println("batch", reply.StatusCode)
		sayParts(reply.Header.Get("Content-Type"), strings.NewReader(text))
		reply, text, err = send("POST", root+"AttendanceRecords", []byte(single), "application/json")
		must(0, err)
		address := reply.Header.Get("Location")
		fmt.Println("record", reply.StatusCode, address, text)
		reply, text, err = send("GET", address, nil, "")
		must(0, err)
		fmt.Println("read", reply.StatusCode, text)
		week := "Learner eq " + os.Args[2] + " and AttendableEventStart ge 2026-03-02 and AttendableEventStart lt 2026-03-09"
		reply, text, err = send("GET", root+"AttendanceRecords?"+url.Values{"$filter": {week}}.Encode(), nil, "")
		must(0, err)
		fmt.Println("page", reply.StatusCode, text)
	}
}
