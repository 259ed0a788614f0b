-- SPDX-License-Identifier: Apache-2.0
-- again, journal, after, entry, change ("", "w", "a", "r"), path, condition, version wanted, version given, time,
-- content, how many bytes of news at most
local journal, after, path, version = ARGV[2], tonumber(ARGV[3]), ARGV[6], ARGV[9]
local first, last = journal_ends(journal)
local id = number(after + 1) .. '-0'
if last < after then return {'short', number(last)} end
if last > after then
  if ARGV[1] == '1' then
    local own = redis.call('XRANGE', base .. 'j:' .. journal, id, id)
    if own[1] and own[1][2][2] == ARGV[4] then
      if ARGV[5] == 'w' then return {'ok', number(#ARGV[11])} end
      return {'ok', redis.call('HGET', file_key(path), 's') or '0'}
    end
  end
  return journal_entries(journal, math.max(after, first - 1), tonumber(ARGV[12]),
    {'overtaken', number(first), number(last)})
end
local no, old
if ARGV[5] == 'w' or ARGV[5] == 'a' then
  no, old = may_write(path, ARGV[7], ARGV[8])
elseif ARGV[5] == 'r' then
  old = redis.call('HMGET', file_key(path), 'v', 's', 'i', 'g')
  no = refusal(ARGV[7], ARGV[8], old[1])
  if not no and not old[1] then no = is_dir(path) and {'recursive', path} or {'none'} end
end
if no then return no end
redis.call('XADD', base .. 'j:' .. journal, id, 'e', ARGV[4])
redis.call('HSET', base .. 'j', journal, number(first) .. ' ' .. number(last + 1))
if ARGV[5] == 'w' then return {'ok', put(path, old, version, ARGV[10], ARGV[11])} end
if ARGV[5] == 'a' then return {'ok', append(path, old, version, ARGV[10], ARGV[11])} end
if ARGV[5] == 'r' then drop_file(path, old) end
return {'ok', '0'}
