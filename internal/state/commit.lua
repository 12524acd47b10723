-- Compare and set. This script knows no word of the domain.
--
-- ARGV begins with the name of this attempt, of eight letters, and with what remembers
-- that it was applied:
--   a number of ms  KEYS[1] is a key for that alone, and is kept so long.
--   'q', 'r'        KEYS[1] is a document, whose field of this name does. What its field v
--                   must hold follows ('' for nothing), then how many words HSET is
--                   given, and these: v and what it will hold are the first two. It is
--                   check 1.
--   ''              nothing does: the change may be applied twice.
-- Field q has the names of the last eight attempts. Field r has the version of the document
-- that it belongs to, a colon, and the names of requests, each with its attempt. With 'r'
-- follow the name of this request, of eleven letters; a number of ms; and 'key' or ''.
-- KEYS[2] is a key for the request alone, kept so long. It is used instead of the field
-- for 'key', and if the field is full or does not belong to the version that is stored.
-- Then the last change was made by a program that uses keys only, and from now on the
-- field belongs to no version.
-- Then come how many checks there are, and the checks; then, to its end, the writes.
-- A check and a write begin with how many words follow: a command, the number of
-- its key in KEYS (0 if it has none), its arguments. The last word of a check
-- is what the command must find, '' for nothing. EXISTS is not a write: the numbers of
-- all its keys follow the number 0 and how many words are left out if there are none.
--
-- It returns {1} applied, {2} applied before by another attempt, {0, n} check n
-- failed. A client that had no answer sends the same attempt again. A change that was
-- applied makes its checks fail, mostly, so nothing is asked before the checks.
local attempt, memory, at = ARGV[1], ARGV[2], 3
local document = memory == 'q' or memory == 'r'
local own, keep = KEYS[1], memory -- a key for the request alone
local field, request, requests    -- the field of a document as it is, and what is in it

-- Returns by which attempt the document remembers that the request was applied.
local function remembered()
  if memory == 'q' then return string.find(field, attempt, 1, true) and attempt end
  for i = 1, #requests, 19 do
    if string.sub(requests, i, i + 10) == request then return string.sub(requests, i + 11, i + 18) end
  end
end

-- What was applied before is written on another connection perhaps, and WAIT
-- and WAITAOF are about the writes of theirs: so this answer writes too. PEXPIRE is
-- a command that a full server takes. A document is kept for ever: for a moment it is
-- kept for thirty years.
local function unless_applied(answer)
  local applied = document and remembered()
  if applied and memory == 'q' then
    redis.call('HSET', KEYS[1], 'q', field)
  elseif applied then
    redis.call('PEXPIRE', KEYS[1], '1000000000000')
    redis.call('PERSIST', KEYS[1])
  elseif own and keep ~= '' then
    applied = redis.call('GET', own)
    if applied then redis.call('PEXPIRE', own, keep) end
  end
  if applied then return {applied == attempt and 1 or 2} end
  return answer
end

local function words(last)
  local key = KEYS[tonumber(ARGV[at + 2])]
  if key then return redis.call(ARGV[at + 1], key, unpack(ARGV, at + 3, last)) end
  return redis.call(ARGV[at + 1], unpack(ARGV, at + 3, last))
end

-- Returns an error if the user may not run one of the commands that write. Redis keeps
-- what a script wrote before a command that it refuses, so all are asked about first.
-- Redis before 7.0 cannot be asked.
local function refusal()
  local asked, i = {}, at
  local function refuses(command, on)
    if asked[command] then return end
    asked[command] = true
    local known, may = pcall(redis.acl_check_cmd, command, on)
    return not (known and may) and redis.error_reply('NOPERM ' .. command .. ' is not permitted to the bot; nothing was stored')
  end
  if not redis.acl_check_cmd then return end
  local refused = document and refuses('HSET', KEYS[1])
  while ARGV[i] and not refused do
    local key = ARGV[i + 1] == 'EXISTS' and 1 or tonumber(ARGV[i + 2])
    refused = refuses(ARGV[i + 1], KEYS[key] or ARGV[i + 3])
    i = i + 1 + tonumber(ARGV[i])
  end
  return refused
end

local first, after = 0 -- what the field will hold
if document then
  local is = redis.call('HMGET', KEYS[1], 'v', memory)
  field, first, at = is[2] or '', 1, 5 + tonumber(ARGV[4])
  if memory == 'q' then
    own, after = nil, string.sub(attempt .. field, 1, 64)
  else
    local version
    version, requests = string.match(field, '^(%d*):(.*)$')
    version, requests = version or '', requests or ''
    request, own, keep = ARGV[at], KEYS[2], ARGV[at + 1]
    local belongs = version == ARGV[3]
    after = (belongs and ARGV[6] or '') .. ':' .. requests
    if belongs and ARGV[at + 2] == '' and #requests < 16 * 19 then
      own, after = nil, after .. request .. attempt
    end
    at = at + 3
  end
  if (is[1] or '') ~= ARGV[3] then return unless_applied({0, 1}) end
end
local checks = tonumber(ARGV[at])
at = at + 1
for n = 1, checks do
  local last = at + tonumber(ARGV[at])
  if tostring(words(last - 1) or '') ~= ARGV[last] then return unless_applied({0, first + n}) end
  at = last + 1
end
if memory == 'r' and remembered() then return unless_applied() end
local refused = refusal()
if refused then return refused end
if own and keep ~= '' and not redis.call('SET', own, attempt, 'PX', keep, 'NX') then return unless_applied() end
if document then redis.call('HSET', KEYS[1], memory, after, unpack(ARGV, 5, 4 + tonumber(ARGV[4]))) end
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
