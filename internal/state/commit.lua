-- Compare and set. This script knows no word of the domain.
--
-- ARGV begins with the name of this attempt, of eight letters, and with what remembers
-- that it was applied:
--   a number of ms  KEYS[1] is a key for that alone, and is kept so long.
--   'q'             KEYS[1] is a document, whose field q has the names of the last eight
--                   attempts. What its field v must hold follows ('' for nothing), then
--                   how many words HSET is given, and these. It is check 1.
--   ''              nothing does: the change may be applied twice.
-- Then come how many checks there are, and the checks; then, to its end, the writes.
-- A check and a write begin with how many words follow: a command, the number of
-- its key in KEYS (0 if it has none), its arguments. The last word of a check
-- is what the command must find, '' for nothing. EXISTS is not a write: the numbers of
-- all its keys follow the number 0 and how many words are left out if there are none.
--
-- It returns {1} applied, {2} applied before by another attempt, {0, n} check n
-- failed. A client that had no answer sends the same attempt again. A change that was
-- applied makes its checks fail, mostly, so nothing is asked before the checks.
local attempt, keep, at = ARGV[1], ARGV[2], 3
local last8

-- What was applied before is written on another connection perhaps, and WAIT
-- and WAITAOF are about the writes of theirs: so this answer writes too. PEXPIRE is
-- a command that a full server takes.
local function unless_applied(answer)
  if last8 and string.find(last8, attempt, 1, true) then
    redis.call('HSET', KEYS[1], 'q', last8)
    return {1}
  end
  local applied = not last8 and keep ~= '' and redis.call('GET', KEYS[1])
  if applied then
    redis.call('PEXPIRE', KEYS[1], keep)
    return {applied == attempt and 1 or 2}
  end
  return answer
end

local function words(last)
  local key = KEYS[tonumber(ARGV[at + 2])]
  if key then return redis.call(ARGV[at + 1], key, unpack(ARGV, at + 3, last)) end
  return redis.call(ARGV[at + 1], unpack(ARGV, at + 3, last))
end

local first = 0
if keep == 'q' then
  local is = redis.call('HMGET', KEYS[1], 'v', 'q')
  last8, first = is[2] or '', 1
  if (is[1] or '') ~= ARGV[3] then return unless_applied({0, 1}) end
  at = 5 + tonumber(ARGV[4])
end
local checks = tonumber(ARGV[at])
at = at + 1
for n = 1, checks do
  local last = at + tonumber(ARGV[at])
  if tostring(words(last - 1) or '') ~= ARGV[last] then return unless_applied({0, first + n}) end
  at = last + 1
end
if last8 then
  redis.call('HSET', KEYS[1], 'q', string.sub(attempt .. last8, 1, 64), unpack(ARGV, 5, 4 + tonumber(ARGV[4])))
elseif keep ~= '' and not redis.call('SET', KEYS[1], attempt, 'PX', keep, 'NX') then
  return unless_applied()
end
while ARGV[at] do
  local last = at + tonumber(ARGV[at])
  if ARGV[at + 1] == 'EXISTS' then
    local keys = {}
    for i = at + 4, last do keys[#keys + 1] = KEYS[tonumber(ARGV[i])] end
    if redis.call('EXISTS', unpack(keys)) == 0 then last = last + tonumber(ARGV[at + 3]) end
  else
    words(last)
  end
  at = last + 1
end
return {1}
