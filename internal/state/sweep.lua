-- Which of the due sets in KEYS hold an entry up to the score ARGV[1]? It returns
-- their numbers, from 1, and writes nothing.
local found = {}
for n, key in ipairs(KEYS) do
  if redis.call('ZCOUNT', key, '-inf', ARGV[1]) > 0 then found[#found + 1] = n end
end
return found
