-- Compare and set. This script knows no word of the domain.
--
-- KEYS[1] remembers the request. ARGV holds the name of this attempt, of eight
-- letters, for how many ms the request is remembered, and how many checks there are;
-- then the checks; then, to its end, the writes. If that time is 0, KEYS[1] is the
-- document itself, whose field q has the names of the last eight attempts.
-- A check and a write begin with how many words follow: a command, the number of
-- its key in KEYS (0 if it has none), its arguments. The last word of a check
-- is what the command must find, '' for nothing.
--
-- It returns {1} applied, {2} applied before by another attempt, {0, n} check n
-- failed. A client that had no answer sends the same attempt again.
--
-- What was applied before is written on another connection perhaps, and WAIT
-- and WAITAOF are about the writes of theirs: so this answer writes too. PEXPIRE is
-- a command that a full server takes.
local last8 = ARGV[2] == '0' and (redis.call('HGET', KEYS[1], 'q') or '')
if last8 and string.find(last8, ARGV[1], 1, true) then
  redis.call('HSET', KEYS[1], 'q', last8)
  return {1}
end
local applied = not last8 and redis.call('GET', KEYS[1])
if applied then
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
  return {applied == ARGV[1] and 1 or 2}
end
local at = 4
local function words(last)
  local key = KEYS[tonumber(ARGV[at + 2])]
  if key then return redis.call(ARGV[at + 1], key, unpack(ARGV, at + 3, last)) end
  return redis.call(ARGV[at + 1], unpack(ARGV, at + 3, last))
end
for n = 1, tonumber(ARGV[3]) do
  local last = at + tonumber(ARGV[at])
  if tostring(words(last - 1) or '') ~= ARGV[last] then return {0, n} end
  at = last + 1
end
while ARGV[at] do
  local last = at + tonumber(ARGV[at])
  words(last)
  at = last + 1
end
if last8 then redis.call('HSET', KEYS[1], 'q', string.sub(ARGV[1] .. last8, 1, 64))
else redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2]) end
return {1}
