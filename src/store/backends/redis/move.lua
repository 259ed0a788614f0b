-- SPDX-License-Identifier: Apache-2.0
-- again, from, to, condition, version wanted, the same two of the target, token, longest path, head
local from, to, kind, token, own = ARGV[2], ARGV[3], ARGV[4], ARGV[8], parse(ARGV[10])

local function answer(path)
  local at = head_of(path)
  return {'ok', at and at.text or ''}
end

if done_before(ARGV[1], token) then return answer(to) end
local have = head_of(from)
if have then
  local no = refusal(kind, ARGV[5], have)
  if no then return no end
elseif not is_dir(from) then
  return kind == 'v' and {'conflict', ''} or {'none'}
elseif kind ~= '' then
  return {'no version', from}
end
local no, old = may_write(to, ARGV[6], ARGV[7])
if no then return no end
if have then
  move_file(from, to, have, old, own)
  done(token, '')
  return answer(to)
end
if old then return {'replace', to} end
local all = redis.call('ZRANGEBYLEX', names, '[' .. from .. '/', '(' .. from .. '0')
for i = 1, #all do
  if #all[i] - #from + #to > tonumber(ARGV[9]) then return {'long', all[i]} end
end
for i = 1, #all do
  local target = to .. string.sub(all[i], #from + 1)
  remember(head_of(all[i]), own.conn, own.mtime)
  redis.call('RENAME', file_key(all[i]), file_key(target))
  redis.call('ZREM', names, all[i])
  redis.call('ZADD', names, 0, target)
end
for _, journal in ipairs(redis.call('HKEYS', base .. 'j')) do
  if string.sub(journal, 1, #from + 1) == from .. '/' then
    local target = to .. string.sub(journal, #from + 1)
    redis.call('RENAME', base .. 'j:' .. journal, base .. 'j:' .. target)
    redis.call('HSET', base .. 'j', target, redis.call('HGET', base .. 'j', journal))
    redis.call('HDEL', base .. 'j', journal)
  end
end
done(token, '')
return {'ok', ''}
