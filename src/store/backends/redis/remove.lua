-- SPDX-License-Identifier: Apache-2.0
-- again, path, "1" for all below, condition, version wanted, token, how many at most, "1" when it continues, head
local path, kind, token, own = ARGV[2], ARGV[4], ARGV[6], parse(ARGV[9])
local before = done_before(ARGV[1], token)
if before then return {'ok', string.match(before, '%d+'), string.sub(before, -1) == '+' and '1' or ''} end
local old = path ~= '' and head_of(path) or nil
if old and ARGV[8] == '' then
  local no = refusal(kind, ARGV[5], old)
  if no then return no end
  drop_file(path, old, own.conn, own.mtime)
  return done(token, '1')
end

local function journals_below()
  local found = {}
  for _, journal in ipairs(redis.call('HKEYS', base .. 'j')) do
    if path == '' or journal == path or string.sub(journal, 1, #path + 1) == path .. '/' then
      found[#found + 1] = journal
    end
  end
  return found
end

local below = is_dir(path)
if ARGV[8] == '' then
  if not below and not (ARGV[3] == '1' and kind == '' and #journals_below() > 0) then
    return kind == 'v' and {'conflict', ''} or {'none'}
  end
  if kind ~= '' then return {'no version', path} end
  if ARGV[3] ~= '1' then return {'recursive', path} end
end
local from, to = '[' .. path .. '/', '(' .. path .. '0'
if path == '' then from, to = '-', '+' end
local some = redis.call('ZRANGEBYLEX', names, from, to, 'LIMIT', 0, ARGV[7])
for i = 1, #some do
  drop_file(some[i], head_of(some[i]), own.conn, own.mtime)
end
local result = number(#some)
if #some == tonumber(ARGV[7]) then
  done(token, result .. '+')
  return {'ok', result, '1'}
end
for _, journal in ipairs(journals_below()) do
  redis.call('UNLINK', base .. 'j:' .. journal)
  redis.call('HDEL', base .. 'j', journal)
end
done(token, result)
return {'ok', result, ''}
