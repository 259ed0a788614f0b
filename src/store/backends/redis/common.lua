-- SPDX-License-Identifier: Apache-2.0
-- What the scripts share. docs/decisions/0022-redis.md has the layout. Refusals are lists whose first item is a word.
-- The order of strings is never asked of Lua, which goes by the server's locale. Before a script has written anything a
-- full server refuses its writes; so what needs memory is written first, and a script never stops half-way.
local names = KEYS[1]
local base = string.sub(names, 1, -2)
local CHUNK, INLINE, APPEND_INLINE, GRACE_MS, TOKEN_MS = 1048576, 262144, 32768, 120000, 60000

local function file_key(path) return base .. 'f:' .. path end
local function chunk_key(gen, i) return base .. 'c:' .. gen .. ':' .. string.format('%d', i) end
local function number(n) return string.format('%.0f', n) end
local function chunk_count(size, inline) return math.ceil((size - inline) / CHUNK) end

local function is_dir(path)
  return path == '' or
    #redis.call('ZRANGEBYLEX', names, '[' .. path .. '/', '(' .. path .. '0', 'LIMIT', 0, 1) > 0
end

-- Why no file can lie at a path where none lies: nil when it can.
local function place(path)
  if is_dir(path) then return {'dir', path} end
  local up, at = {}, string.find(path, '/', 1, true)
  while at do
    up[#up + 1] = string.sub(path, 1, at - 1)
    at = string.find(path, '/', at + 1, true)
  end
  if #up > 0 then
    local scores = redis.call('ZMSCORE', names, unpack(up))
    for i = 1, #up do
      if scores[i] then return {'file', up[i]} end
    end
  end
end

local function refusal(kind, want, have)
  if kind == 'a' and have then return {'exists'} end
  if kind == 'v' and have ~= want then return {'conflict', have or ''} end
end

-- nil or a refusal, and what is there: version, size, inline length, generation.
local function may_write(path, kind, want)
  local old = redis.call('HMGET', file_key(path), 'v', 's', 'i', 'g')
  local no
  if not old[1] then no = place(path) end
  return no or refusal(kind, want, old[1]), old
end

-- The chunks of a file that was replaced or removed stay for those who are reading it.
local function drop_chunks(old)
  if old[4] and old[4] ~= '' then
    for i = 0, chunk_count(tonumber(old[2]), tonumber(old[3])) - 1 do
      redis.call('PEXPIRE', chunk_key(old[4], i), GRACE_MS)
    end
  end
end

local function put(path, old, version, mtime, data)
  local size, gen, head = #data, '', data
  if size > INLINE then
    gen, head = version, string.sub(data, 1, INLINE)
    for i = 0, chunk_count(size, INLINE) - 1 do
      redis.call('SET', chunk_key(gen, i), string.sub(data, INLINE + i * CHUNK + 1, INLINE + (i + 1) * CHUNK))
    end
  end
  redis.call('HSET', file_key(path), 'v', version, 's', size, 'm', mtime, 'i', #head, 'g', gen, 'd', head)
  if old[1] then drop_chunks(old) else redis.call('ZADD', names, 0, path) end
  return number(size)
end

-- Chunks are only ever added to at the end, so a reader who knows the size of before reads what it had.
local function add_to_chunks(gen, at, data)
  local from = 1
  while from <= #data do
    local piece = string.sub(data, from, from + CHUNK - at % CHUNK - 1)
    redis.call('APPEND', chunk_key(gen, math.floor(at / CHUNK)), piece)
    at, from = at + #piece, from + #piece
  end
end

local function append(path, old, version, mtime, data)
  if not old[1] then return put(path, old, version, mtime, data) end
  local key, size, inline, gen = file_key(path), tonumber(old[2]), tonumber(old[3]), old[4]
  local sum = number(size + #data)
  if size == inline and size + #data <= APPEND_INLINE then
    redis.call('HSET', key, 'd', redis.call('HGET', key, 'd') .. data, 'i', sum, 's', sum, 'v', version, 'm', mtime)
  else
    if gen == '' then gen = version end
    redis.call('HSET', key, 's', sum, 'v', version, 'm', mtime, 'g', gen)
    add_to_chunks(gen, size - inline, data)
  end
  return sum
end

local function drop_file(path, old)
  redis.call('ZREM', names, path)
  redis.call('UNLINK', file_key(path))
  drop_chunks(old)
end

-- A change is remembered for a while under its token: one whose answer was lost asks before it is made again.
local function done_before(again, token)
  return again == '1' and redis.call('GET', base .. 't:' .. token)
end
local function done(token, result)
  redis.call('SET', base .. 't:' .. token, result, 'PX', TOKEN_MS)
  return {'ok', result}
end

-- The first and the last number of a journal.
local function journal_ends(path)
  local first, last = string.match(redis.call('HGET', base .. 'j', path) or '', '^(%d+) (%d+)$')
  return tonumber(first or 1), tonumber(last or 0)
end
local function journal_entries(path, after, max, out)
  local at, bytes, count = after + 1, 0, 8
  while true do
    local got = redis.call('XRANGE', base .. 'j:' .. path, number(at) .. '-0', '+', 'COUNT', count)
    for i = 1, #got do
      local entry = got[i][2][2]
      if bytes > 0 and bytes + #entry > max then return out end
      out[#out + 1] = entry
      bytes = bytes + math.max(#entry, 1)
    end
    if #got < count then return out end
    at = at + #got
    count = math.max(1, math.min(256, math.floor((max - bytes) * (at - after) / bytes)))
  end
end
