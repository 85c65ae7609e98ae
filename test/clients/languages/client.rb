# A V2 client of Ruby's standard library: Net::HTTP, which also reads the reply inside each part.
# Arguments: file of records (one JSON a line, the last is posted alone), learner to read, roots of the service.
require 'net/http'
require 'securerandom'
require 'stringio'

KEYS = { 'Ocp-Apim-Subscription-Key' => 'sandbox', 'Authorization' => 'Bearer sandbox' }.freeze
$stdout.set_encoding('UTF-8')

def call(type, url, body = nil, headers = {})
  uri = URI(url)
  request = type.new(uri, KEYS.merge(headers))
  request.body = body if body
  Net::HTTP.start(uri.host, uri.port, max_retries: 0) { |http| http.request(request) }
end

def to_batch(records)
  batch = "batch_#{SecureRandom.uuid}"
  changeset = "changeset_#{SecureRandom.uuid}"
  lines = ["--#{batch}", "Content-Type: multipart/mixed; boundary=#{changeset}", '']
  records.each_with_index do |record, index|
    lines.push("--#{changeset}", 'Content-Type: application/http', 'Content-Transfer-Encoding: binary')
    lines.push("Content-ID: #{index + 1}", '')
    lines.push('POST /AttendanceServiceFarm1/OData/V1/AttendanceRecords HTTP/1.1')
    lines.push('Content-Type: application/json;odata.metadata=minimal', '', record)
  end
  ["multipart/mixed; boundary=#{batch}", [*lines, "--#{changeset}--", "--#{batch}--", ''].join("\r\n")]
end

def say_parts(content_type, body)
  boundary = Regexp.escape(content_type[/boundary="?([^";]+)/, 1])
  body.split(/^--#{boundary}(?:--)?[ \t]*\r\n/)[1..].each do |part|
    head, content = part.split("\r\n\r\n", 2)
    next if content.nil?

    type = head[/^Content-Type: (.*?)\r?$/i, 1]
    if type.start_with?('multipart/')
      say_parts(type, content)
    else
      io = Net::BufferedIO.new(StringIO.new(content))
      reply = Net::HTTPResponse.read_new(io)
      json = reply.reading_body(io, true) { reply.body }
      puts "part #{head[/^Content-ID: (.*?)\r?$/i, 1]} #{reply.code} #{json.force_encoding('UTF-8').strip}"
    end
  end
end

path, learner, *roots = ARGV
*records, single = File.read(path, encoding: 'UTF-8').split("\n")
roots.each do |root|
  content_type, body = to_batch(records)
  begin
    reply = call(Net::HTTP::Post, "#{root}$batch", body, 'Content-Type' => content_type)
  rescue EOFError, SystemCallError
    puts 'lost'
    retry
  end
  puts "batch #{reply.code}"
  say_parts(reply['Content-Type'], reply.body.b)
  reply = call(Net::HTTP::Post, "#{root}AttendanceRecords", single, 'Content-Type' => 'application/json')
  puts "record #{reply.code} #{reply['Location']} #{reply.body.force_encoding('UTF-8')}"
  reply = call(Net::HTTP::Get, reply['Location'])
  puts "read #{reply.code} #{reply.body.force_encoding('UTF-8')}"
  week = "Learner eq #{learner} and AttendableEventStart ge 2026-03-02 and AttendableEventStart lt 2026-03-09"
  query = URI.encode_www_form('$filter' => week)
  reply = call(Net::HTTP::Get, "#{root}AttendanceRecords?#{query}")
  puts "page #{reply.code} #{reply.body.force_encoding('UTF-8')}"
end
