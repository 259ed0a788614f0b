-- SPDX-License-Identifier: Apache-2.0
-- again, journal, key of all journals, of this one, id of the entry, entry, how many bytes of news at most, head, number
-- of the entry before; then six for each change: "w", "r" or "m", path, condition, version wanted; of a write: head and
-- bytes, -; of a move: the path of before, and the version that it must have. The answer to a refused one ends with its
-- index.
local journal, entry, own, number_of = ARGV[2], ARGV[6], parse(ARGV[8]), tonumber(ARGV[9]) + 1
local first, last = journal_ends(journal)
if last < number_of - 1 then return {'short', number(last)} end
if last >= number_of then
  if ARGV[1] == '1' then
    local have = redis.call('XRANGE', ARGV[4], ARGV[5], ARGV[5])
    if have[1] and have[1][2][2] == entry then return {'ok'} end
  end
  return journal_entries(journal, math.max(number_of - 1, first - 1), tonumber(ARGV[7]),
    {'overtaken', number(first), number(last)})
end
local old, have = {}, {}
for i = 10, #ARGV, 6 do
  local change, path, no = ARGV[i], ARGV[i + 1], nil
  if change == 'm' then
    have[i] = head_of(ARGV[i + 4])
    no = refusal('v', ARGV[i + 5], have[i])
  end
  if not no and change ~= 'r' then
    no, old[i] = may_write(path, ARGV[i + 2], ARGV[i + 3])
  elseif not no then
    old[i] = head_of(path)
    no = refusal(ARGV[i + 2], ARGV[i + 3], old[i])
    if not no and not old[i] then no = is_dir(path) and {'recursive', path} or {'none'} end
  end
  if no then return {no[1], no[2] or '', number((i - 10) / 6)} end
end
redis.call('XADD', ARGV[4], ARGV[5], 'e', entry)
if last == 0 then redis.call('HSET', ARGV[3], journal, '0') end
for i = 10, #ARGV, 6 do
  local change, path, data = ARGV[i], ARGV[i + 1], ARGV[i + 4]
  if change == 'w' then
    put(path, old[i], string.sub(data, 1, 1) .. own.conn .. string.sub(data, 10), '')
  elseif change == 'm' then
    move_file(data, path, have[i], old[i], own)
  else
    drop_file(path, old[i], own.conn, own.mtime)
  end
end
return {'ok'}
