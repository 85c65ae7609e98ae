#!/usr/bin/env ruby
# frozen_string_literal: true

# Posts a register of attendance marks to V3 directly, and prints a line for each record.
#
# Usage: v3-register.rb FILE. README.md describes the file, the environment and the exit status. Only the standard library.

require 'json'
require 'net/http'
require 'time'

def usage(problem)
  warn "#{problem}\nusage: V3_URL=… V3_KEY=… V3_TOKEN=… v3-register.rb FILE"
  exit 2
end

# The V3 form of a flat record. The all-zero id asks the service for a new one.
def to_v3(record)
  reference = ->(name, type) { { 'ExternalID' => record[name], 'Type' => type } }
  {
    'ExternalID' => '00000000-0000-0000-0000-000000000000',
    'Present' => record['Present'],
    'Absent' => record['Absent'],
    'RecordedOn' => Time.now.utc.iso8601,
    'ChangeProcessName' => 'register',
    'Attendee' => reference.call('Learner', 'Learner.Identifier'),
    'Event' => reference.call('AttendableEvent', 'Attendance.AttendanceSession'),
    'AttendanceCode' => reference.call('SchoolAttendanceCode', 'Attendance.Lookup'),
    'Qualifier' => { 'MinutesLate' => record['MinutesLate'], 'Comment' => record['Comment'] }
  }
end

# The status and the codes. V3 did not apply a record that got 429 or 503, so only such a record is sent again.
def post(url, headers, record)
  ENV.fetch('V3_REPEATS', '3').to_i.downto(0) do |left|
    reply = Net::HTTP.start(url.host, url.port, use_ssl: url.scheme == 'https', read_timeout: 60, max_retries: 0) do |http|
      http.post(url.request_uri, JSON.generate(to_v3(record)), headers)
    end
    status = reply.code.to_i
    if [429, 503].include?(status) && left.positive?
      sleep((reply['Retry-After'].to_s[/\A\d+\z/] || ENV.fetch('V3_PAUSE', '1')).to_i)
      next
    end
    return ['unknown'] if status >= 500 && status != 503

    error = status >= 400 ? JSON.parse(reply.body).fetch('error', {}) : {}
    return [status, *(error['details'] || [error]).map { |one| one['code'] }.compact]
  end
rescue EOFError, SystemCallError, SocketError, Timeout::Error
  ['unknown']
end

url, key, token = %w[V3_URL V3_KEY V3_TOKEN].map do |name|
  ENV.fetch(name, '').then { |value| value.empty? ? usage("#{name} is not set") : value }
end
usage 'the file of records cannot be read' unless ARGV.one? && File.readable?(ARGV[0])
records = File.readlines(ARGV[0], encoding: 'UTF-8').map(&:strip).reject(&:empty?).map { |line| JSON.parse(line) }
headers = { 'Ocp-Apim-Subscription-Key' => key, 'Authorization' => "Bearer #{token}", 'Content-Type' => 'application/json' }
address = URI("#{url.chomp('/')}/AttendanceRecords")
written = records.each_with_index.count do |record, index|
  outcome = post(address, headers, record)
  puts [index + 1, *outcome].join(' ')
  [200, 201].include?(outcome.first)
end
exit written == records.size
