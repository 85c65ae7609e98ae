#!/usr/bin/env ruby
# frozen_string_literal: true

# Posts a register of attendance marks as one V2 $batch, and prints a line for each record.
#
# Usage: post-register.rb FILE. README.md describes the file, the environment and the exit status.
# Net::HTTP posts, the gem mail reads multipart (Debian: ruby-mail). It would write records in base64, so they are written here.

require 'json'
require 'mail'
require 'net/http'
require 'securerandom'

# Set V2_REPEATS=0 where V2 serves, because V2 does not recognise a repeated batch.
REPEATS = ENV.fetch('V2_REPEATS', '3').to_i
# Matches a reply of Markbridge or V2. Any other reply, such as a load balancer's page, says nothing about the batch.
OWN = /\A[34]..\s*[{\[]|batchresponse_|"ADP_/.freeze
# After any other answer, such as a part with V2's own 503, V2 could write the batch twice, or nothing would change.
REPEATABLE = /\A503|\A504.*"ADP_(OUTCOME_UNKNOWN|JOURNAL_LOST)"|
  \A200.*"ErrorCode":"ADP_(UPSTREAM_UNAVAILABLE|JOURNAL_UNAVAILABLE|BUDGET_EXCEEDED|OVERLOADED|OUTCOME_UNKNOWN)"/mx.freeze

def fail_with(status, problem)
  warn problem
  exit status
end

def usage(problem)
  fail_with 2, "#{problem}\nusage: V2_URL=… V2_KEY=… V2_TOKEN=… post-register.rb FILE"
end

# The Content-Type and the body. Batch and changeset share the id, which the header must have.
def build_batch(records)
  id = SecureRandom.uuid
  parts = records.each_with_index.map do |record, index|
    ["--changeset_#{id}", 'Content-Type: application/http', 'Content-Transfer-Encoding: binary',
     "Content-ID: #{index + 1}", '', 'POST /AttendanceServiceFarm1/OData/V1/AttendanceRecords HTTP/1.1',
     'Content-Type: application/json;odata.metadata=minimal', 'Prefer: return=representation', '', record]
  end
  lines = ["--batch_#{id}", "Content-Type: multipart/mixed; boundary=changeset_#{id}", '', *parts,
           "--changeset_#{id}--", "--batch_#{id}--", '']
  ["multipart/mixed; boundary=batch_#{id}", lines.join("\r\n")]
end

def post(url, headers, body)
  Net::HTTP.start(url.host, url.port, use_ssl: url.scheme == 'https', read_timeout: 120) do |http|
    reply = http.post(url.request_uri, body, { **headers, 'Accept-Encoding' => 'identity' })
    # Net::HTTP takes a reply that breaks off for a whole one.
    raise EOFError if reply.body.bytesize < reply.content_length.to_i || !OWN.match?("#{reply.code}#{reply.body}")

    reply
  end
end

# Repeats the same bytes. With others, or another boundary, it would be another batch, and its marks would be written again.
def post_until_answered(url, headers, body)
  REPEATS.downto(0) do |left|
    pause = ENV.fetch('V2_PAUSE', '10')
    begin
      reply = post(url, headers, body)
      return reply if left.zero? || !REPEATABLE.match?("#{reply.code}#{reply.body}")

      pause = reply['Retry-After'].to_s[/\A\d+\z/] || pause
    rescue EOFError, SystemCallError, SocketError, Timeout::Error => e
      fail_with 1, "no answer (#{e.class}): look up what was written before you post again" if left.zero?
    end
    sleep pause.to_i
  end
end

# The replies in the order of the records, of flat and nested batches alike.
def read_parts(part)
  return part.parts.flat_map { |inner| read_parts(inner) } if part.multipart?

  reply = part.body.decoded
  [[reply.split[1].to_i, reply.scan(/"ErrorCode":"([^"]*)"/).flatten]]
end

url, key, token = %w[V2_URL V2_KEY V2_TOKEN].map do |name|
  ENV.fetch(name, '').then { |value| value.empty? ? usage("#{name} is not set") : value }
end
usage 'the file of records cannot be read' unless ARGV.one? && File.readable?(ARGV[0])
records = File.readlines(ARGV[0], encoding: 'UTF-8').map(&:strip).reject(&:empty?)
usage 'there are no records' if records.empty?

content_type, body = build_batch(records)
headers = { 'Ocp-Apim-Subscription-Key' => key, 'Authorization' => "Bearer #{token}", 'Content-Type' => content_type }
reply = post_until_answered(URI("#{url.chomp('/')}/$batch"), headers, body)
fail_with 1, "refused as a whole: #{reply.code} #{reply.body}" unless reply.code == '200'

parts = read_parts(Mail.new("Content-Type: #{reply['Content-Type']}\r\n\r\n#{reply.body}"))
parts.each_with_index { |(status, codes), index| puts [index + 1, status, *codes].join(' ') }
fail_with 1, "#{records.size} records, #{parts.size} answers: look up what was written" if parts.size != records.size
exit parts.all? { |status, _| status < 300 }
