-- wrk's requests: each creates a new plant. The settings are in the environment.

local threads = 0

-- Each thread has its own range of ids, and thread n loads replica n.
function setup(thread)
  local ports = {}
  for port in os.getenv("BENCH_PORTS"):gmatch("%d+") do
    ports[#ports + 1] = port
  end
  thread.addr = wrk.lookup("127.0.0.1", ports[threads % #ports + 1])[1]
  thread:set("first", tonumber(os.getenv("BENCH_FIRST_ID")) + threads)
  threads = threads + 1
end

local letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789 -"

function init(args)
  math.randomseed(first)
  local name = {}
  for i = 1, tonumber(os.getenv("BENCH_NAME_BYTES")) do
    local at = math.random(#letters)
    name[i] = letters:sub(at, at)
  end
  head = "POST /plants HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer " .. os.getenv("BENCH_TOKEN")
    .. "\r\nContent-Type: application/json\r\nContent-Length: "
  tail = ',"name":"' .. table.concat(name) .. '","tag":"indoor"}'
  random = os.getenv("BENCH_IDS") == "random"
  count = 0
end

function request()
  local id
  if random then
    -- A Lua number has 53 bits, so two of them make an id in the lower half of the positive int64 range.
    id = math.random(1, 4611686017) .. string.format("%09d", math.random(0, 999999999))
  else
    count = count + 1
    id = string.format("%d%010d", first, count)
  end
  local body = '{"id":' .. id .. tail
  return head .. #body .. "\r\n\r\n" .. body
end

function done(summary, latency, requests)
  local errors = summary.errors
  io.write(string.format(
    '{"requests":%d,"microseconds":%d,"p50":%d,"p99":%d,"refused":%d,"failed":%d}\n',
    summary.requests, summary.duration, latency:percentile(50), latency:percentile(99),
    errors.status, errors.connect + errors.read + errors.write + errors.timeout))
end
