-- When is the first entry of each of the due sets in KEYS due? It returns the numbers of
-- the sets that have one up to the score ARGV[1], from 1, each with the score of the
-- first. It writes nothing. It publishes the message ARGV[3] on the channel ARGV[2], so
-- that whoever asks learns whether wake-ups from here arrive.
local found = {}
for n, key in ipairs(KEYS) do
  local first = redis.call('ZRANGEBYSCORE', key, '-inf', ARGV[1], 'WITHSCORES', 'LIMIT', 0, 1)
  if first[2] then
    found[#found + 1] = n
    found[#found + 1] = tonumber(first[2])
  end
end
redis.call('PUBLISH', ARGV[2], ARGV[3])
return found
