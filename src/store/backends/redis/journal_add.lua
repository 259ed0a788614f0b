-- SPDX-License-Identifier: Apache-2.0
-- again, key of the file, head that makes it simple, condition, version wanted, write: head and bytes, append: bytes,
-- key where those of a write were put just before, journal, change ("", "w", "a", "r", "m"), key of all journals, of this
-- one, number of the entry, entry, how many bytes of news at most, head, number of the
-- entry before; of a move: the path of before, and the version that it must have
local path, data, staged, journal, change = path_of(ARGV[2]), ARGV[6], ARGV[7], ARGV[8], ARGV[9]
local number_of, entry, new = tonumber(ARGV[16]) + 1, ARGV[13], parse(ARGV[15])
local first, last = journal_ends(journal)
local function unmade(answer)
  if staged ~= '' then redis.call('UNLINK', staged) end
  return answer
end
if last < number_of - 1 then return unmade({'short', number(last)}) end
if last >= number_of then
  if ARGV[1] == '1' then
    local own = redis.call('XRANGE', ARGV[11], ARGV[12], ARGV[12])
    if own[1] and own[1][2][2] == entry then
      if change == 'w' then return unmade({'ok', number(new.size)}) end
      local now = head_of(path)
      return {'ok', now and number(now.size) or '0', now and now.mtime or '0'}
    end
  end
  return unmade(journal_entries(journal, math.max(number_of - 1, first - 1), tonumber(ARGV[14]),
    {'overtaken', number(first), number(last)}))
end
local no, old, have
if change == 'm' then
  have = head_of(ARGV[17])
  no = refusal('v', ARGV[18], have)
  if not no then no, old = may_write(path, ARGV[4], ARGV[5]) end
elseif change == 'w' or change == 'a' then
  no, old = may_write(path, ARGV[4], ARGV[5])
elseif change == 'r' then
  old = head_of(path)
  no = refusal(ARGV[4], ARGV[5], old)
  if not no and not old then no = is_dir(path) and {'recursive', path} or {'none'} end
end
if no then return unmade(no) end
if staged ~= '' and redis.call('EXISTS', staged) == 0 then return {'lost'} end
redis.call('XADD', ARGV[11], ARGV[12], 'e', entry)
if last == 0 then redis.call('HSET', ARGV[10], journal, '0') end
if change == 'w' then return {'ok', put(path, old, data, staged)} end
if change == 'a' then return {'ok', number(append(path, old, ARGV[15], data).size)} end
if change == 'm' then
  move_file(ARGV[17], path, have, old, new)
  return {'ok', number(have.size), have.mtime}
end
if change == 'r' then drop_file(path, old, new.conn, new.mtime) end
return {'ok', '0'}
