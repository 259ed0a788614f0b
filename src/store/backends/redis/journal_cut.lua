-- SPDX-License-Identifier: Apache-2.0
-- journal, the first entry that stays
local first, last = journal_ends(ARGV[1])
local before = math.min(tonumber(ARGV[2]), last)
if before > first then
  redis.call('HSET', base .. 'j', ARGV[1], number(before - 1))
  redis.call('XTRIM', base .. 'j:' .. ARGV[1], 'MINID', '=', number(before) .. '-0')
end
return {'ok'}
