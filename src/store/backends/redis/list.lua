-- SPDX-License-Identifier: Apache-2.0
-- path, "1" for all below, where to begin (as ZRANGEBYLEX wants it), how many at most. The answer: "ok", "1" when more
-- is there, then two for each entry: path (a directory's ends in "/"), head.
local path, recursive, from, limit = ARGV[1], ARGV[2] == '1', ARGV[3], tonumber(ARGV[4])
if not is_dir(path) then
  return redis.call('EXISTS', file_key(path)) == 1 and {'is file', path} or {'none'}
end
local to = path == '' and '+' or '(' .. path .. '0'
local skip = path == '' and 1 or #path + 2
local out, count, inside = {'ok', ''}, 0, nil

local function add(name)
  if count == limit then
    out[2] = '1'
    return false
  end
  count = count + 1
  out[#out + 1] = name
  out[#out + 1] = string.sub(name, -1) == '/' and '' or redis.call('GETRANGE', file_key(name), 0, HEAD - 1)
  return true
end

while true do
  local batch = math.min(limit + 1, 200)
  local got = redis.call('ZRANGEBYLEX', names, from, to, 'LIMIT', 0, batch)
  for i = 1, #got do
    local name = got[i]
    if not (inside and string.sub(name, 1, #inside) == inside) then
      local slash = not recursive and string.find(name, '/', skip, true)
      inside = slash and string.sub(name, 1, slash) or nil
      if not add(inside or name) then return out end
    end
  end
  if #got < batch then return out end
  from = inside and '[' .. string.sub(inside, 1, -2) .. '0' or '(' .. got[#got]
end
