-- When is the first entry of each kind of due work due? It returns the numbers of the kinds
-- that have one, from 1, each with its score. It writes nothing. It publishes the message
-- ARGV[2] on the channel ARGV[1], so that whoever asks learns whether wake-ups from here
-- arrive.
--
-- The entries of kind n have scores from ARGV[2n+1] to ARGV[2n+2], in the sorted set
-- KEYS[n], or in KEYS[1] if that is the only one. Then a few entries are read at once,
-- however many kinds there are.
local few = 32
local found = {}
local all = #KEYS == 1 and redis.call('ZRANGE', KEYS[1], 0, few, 'WITHSCORES')
for n = 1, (#ARGV - 2) / 2 do
  local from, to, first = ARGV[2 * n + 1], ARGV[2 * n + 2]
  if all and #all <= 2 * few then
    for i = 2, #all, 2 do
      local at = tonumber(all[i])
      if not first and at >= tonumber(from) and at <= tonumber(to) then first = at end
    end
  else
    first = redis.call('ZRANGEBYSCORE', KEYS[n] or KEYS[1], from, to, 'WITHSCORES', 'LIMIT', 0, 1)[2]
  end
  if first then
    found[#found + 1] = n
    found[#found + 1] = tonumber(first)
  end
end
redis.call('PUBLISH', ARGV[1], ARGV[2])
return found
