-- Sends rows to a service and compares each answer with the one to that row alone: numbers to a tolerance, the rest to the letter.
-- rows.lua, which benchmarks/load.py writes, returns {body, predictions} for each row; the id of row n is "row-n".

local rows = dofile(os.getenv("BERT_TF_LOAD_ROWS"))
local tolerance = tonumber(os.getenv("BERT_TF_LOAD_TOLERANCE"))
local threads = {}

local function parts(text)
  local numbers = {}
  local skeleton = text:gsub("%-?%d+%.?%d*[eE]?[-+]?%d*", function(number)
    numbers[#numbers + 1] = tonumber(number) or 0
    return "#"
  end)
  return skeleton, numbers
end

local function same(found, expected)
  local a, first = parts(found)
  local b, second = parts(expected)
  if a ~= b or #first ~= #second then return false end
  for place, number in ipairs(first) do
    if math.abs(number - second[place]) > tolerance then return false end
  end
  return true
end

function setup(thread)
  thread:set("at", #threads * 37)
  table.insert(threads, thread)
end

function init() good, wrong, refused = 0, 0, 0 end

function request()
  at = at % #rows + 1
  return wrk.format("POST", nil, {["Content-Type"] = "application/json"}, rows[at][1])
end

function response(status, _, body)
  local number = body:match('"id": "row%-(%d+)"')
  if status ~= 200 or not number then refused = refused + 1
  elseif same(body:match('"predictions": (.*)$'), rows[tonumber(number) + 1][2]) then good = good + 1
  else wrong = wrong + 1 end
end

function done(summary, latency)
  local sums = {good = 0, wrong = 0, refused = 0}
  for _, thread in ipairs(threads) do
    for name in pairs(sums) do sums[name] = sums[name] + thread:get(name) end
  end
  local errors = summary.errors
  local lost = errors.connect + errors.read + errors.write + errors.timeout
  io.write(string.format('RESULT {"good": %d, "wrong": %d, "refused": %d, "lost": %d, "per_second": %.1f, "p50_ms": %.1f, "p99_ms": %.1f}\n',
    sums.good, sums.wrong, sums.refused, lost, summary.requests / summary.duration * 1e6,
    latency:percentile(50) / 1e3, latency:percentile(99) / 1e3))
end
