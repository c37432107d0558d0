-- Sends the requests of a file in turn, and prints the result as one line of JSON. A NUL byte ends each request.
local requests, last = {}, 0

function init(args)
  local file = assert(io.open(args[1], "rb"))
  for request in file:read("*a"):gmatch("([^%z]+)%z") do
    requests[#requests + 1] = request
  end
end

function request()
  last = last % #requests + 1
  return requests[last]
end

function done(summary, latency)
  local errors = summary.errors
  local failed = errors.connect + errors.read + errors.write + errors.status + errors.timeout
  io.write(string.format(
    '\n{"count":%d,"failed":%d,"microseconds":%d,"bytes":%d,"p50":%d,"p99":%d,"p999":%d}\n',
    summary.requests, failed, summary.duration, summary.bytes, latency:percentile(50), latency:percentile(99),
    latency:percentile(99.9)))
end
