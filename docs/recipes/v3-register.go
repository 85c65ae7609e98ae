// Posts a register of attendance marks to V3 directly, and prints a line for each record.
//
// Usage: go run v3-register.go FILE. README.md describes the file, the environment and the exit status. Only the standard library.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"
)

type object map[string]any

func usage(problem string) {
	fmt.Fprintf(os.Stderr, "%s\nusage: V3_URL=… V3_KEY=… V3_TOKEN=… v3-register FILE\n", problem)
	os.Exit(2)
}

func setting(name string) string {
	value := os.Getenv(name)
	if value == "" {
		usage(name + " is not set")
	}
	return value
}

func number(text string, fallback int) int {
	if value, err := strconv.Atoi(text); err == nil {
		return value
	}
	return fallback
}

// toV3 returns the V3 form of a flat record. The all-zero id asks the service for a new one.
func toV3(record object) object {
	reference := func(name, kind string) object { return object{"ExternalID": record[name], "Type": kind} }
	return object{
		"ExternalID":        "00000000-0000-0000-0000-000000000000",
		"Present":           record["Present"],
		"Absent":            record["Absent"],
		"RecordedOn":        time.Now().UTC().Format("2006-01-02T15:04:05Z"),
		"ChangeProcessName": "register",
		"Attendee":          reference("Learner", "Learner.Identifier"),
		"Event":             reference("AttendableEvent", "Attendance.AttendanceSession"),
		"AttendanceCode":    reference("SchoolAttendanceCode", "Attendance.Lookup"),
		"Qualifier":         object{"MinutesLate": record["MinutesLate"], "Comment": record["Comment"]},
	}
}

// post returns the status and the codes. V3 did not apply a record that got 429 or 503, so only such a record is sent again.
func post(url string, record object) string {
	body, _ := json.Marshal(toV3(record))
	client := http.Client{Timeout: time.Minute}
	for left := number(os.Getenv("V3_REPEATS"), 3); ; left-- {
		request, err := http.NewRequest("POST", url, bytes.NewReader(body))
		if err != nil {
			usage("V3_URL is not an address")
		}
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("Ocp-Apim-Subscription-Key", setting("V3_KEY"))
		request.Header.Set("Authorization", "Bearer "+setting("V3_TOKEN"))
		reply, err := client.Do(request)
		if err != nil || (reply.StatusCode >= 500 && reply.StatusCode != 503) {
			return "unknown"
		}
		var answer struct {
			Error struct {
				Code    string
				Details []struct{ Code string }
			}
		}
		err = json.NewDecoder(reply.Body).Decode(&answer)
		reply.Body.Close()
		if left > 0 && (reply.StatusCode == 429 || reply.StatusCode == 503) {
			pause := number(reply.Header.Get("Retry-After"), number(os.Getenv("V3_PAUSE"), 1))
			time.Sleep(time.Duration(pause) * time.Second)
			continue
		}
		if err != nil && reply.StatusCode < 300 {
			return "unknown"
		}
		words := []string{strconv.Itoa(reply.StatusCode)}
		for _, one := range answer.Error.Details {
			words = append(words, one.Code)
		}
		if len(answer.Error.Details) == 0 && answer.Error.Code != "" {
			words = append(words, answer.Error.Code)
		}
		return strings.Join(words, " ")
	}
}

func main() {
	url := strings.TrimRight(setting("V3_URL"), "/") + "/AttendanceRecords"
	setting("V3_KEY")
	setting("V3_TOKEN")
	if len(os.Args) != 2 {
		usage("name the file of records")
	}
	text, err := os.ReadFile(os.Args[1])
	if err != nil {
		usage("the file of records cannot be read")
	}
	count, failed := 0, 0
	for _, line := range strings.Split(string(text), "\n") {
		if strings.TrimSpace(line) == "" {
			continue
		}
		var record object
		if json.Unmarshal([]byte(line), &record) != nil {
			usage("a record is not JSON")
		}
		count++
		outcome := post(url, record)
		fmt.Println(count, outcome)
		if outcome != "200" && outcome != "201" {
			failed++
		}
	}
	if failed > 0 {
		os.Exit(1)
	}
}
