-- When is the first entry of each kind of due work due? It is in the sorted set KEYS[n], with
-- a score from ARGV[2n+1] to ARGV[2n+2]. It returns the numbers of the kinds that have one
-- there, from 1, each with its score. It writes nothing. It publishes the message ARGV[2] on
-- the channel ARGV[1], so that whoever asks learns whether wake-ups from here arrive.
local found = {}
for n, key in ipairs(KEYS) do
  local first = redis.call('ZRANGEBYSCORE', key, ARGV[2 * n + 1], ARGV[2 * n + 2], 'WITHSCORES', 'LIMIT', 0, 1)
  if first[2] then
    found[#found + 1] = n
    found[#found + 1] = tonumber(first[2])
  end
end
redis.call('PUBLISH', ARGV[1], ARGV[2])
return found
