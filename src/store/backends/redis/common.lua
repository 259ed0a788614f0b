-- SPDX-License-Identifier: Apache-2.0
-- What the scripts share. docs/decisions/0022-redis.md has the layout. Refusals are lists whose first item is a word.
-- The order of strings is never asked of Lua, which goes by the server's locale. Before a script has written anything a
-- full server refuses its writes; so what needs memory is written first, and a script never stops half-way.
local names = KEYS[1]
local base = string.sub(names, 1, -2)
local CHUNK, INLINE, APPEND_INLINE, GRACE_MS, TOKEN_MS, RECENT_NS = 1048576, 262144, 32768, 120000, 60000, 600e9
local HEAD = 149

local function file_key(path) return base .. 'f:' .. path end
local function path_of(key) return string.sub(key, #base + 3) end
local function chunk_key(gen, i) return base .. 'c:' .. gen .. ':' .. string.format('%d', i) end
local function number(n) return string.format('%.0f', n) end
local function chunk_count(size, inline) return math.ceil((size - inline) / CHUNK) end
local function trim(s) return (string.gsub(s, ' +$', '')) end

-- The head that a file's string begins with, and what it says; nil when there is no file. Versions keep their padding.
local function parse(text)
  return {text = text, conn = string.sub(text, 2, 9), version = string.sub(text, 10, 57),
    size = tonumber(string.sub(text, 58, 73)), mtime = string.sub(text, 74, 93),
    inline = tonumber(string.sub(text, 94, 101)), gen = trim(string.sub(text, 102, HEAD))}
end
local function head_of(path)
  local text = redis.call('GETRANGE', file_key(path), 0, HEAD - 1)
  return text ~= '' and parse(text) or nil
end
local function head_text(h)
  return (h.gen == '' and '0' or '1') .. h.conn .. h.version .. string.format('%016.0f', h.size) .. h.mtime ..
    string.format('%08d', h.inline) .. string.format('%-48s', h.gen)
end

local function is_dir(path)
  return path == '' or
    #redis.call('ZRANGEBYLEX', names, '[' .. path .. '/', '(' .. path .. '0', 'LIMIT', 0, 1) > 0
end

-- The reason why no file can be made at a path that has none: nil when it can.
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

local function refusal(kind, want, old)
  if kind == 'a' and old then return {'exists'} end
  if kind == 'v' and not (old and old.version == want) then return {'conflict', old and old.version or ''} end
end

-- nil or a refusal, and the head of what is there.
local function may_write(path, kind, want)
  local old = head_of(path)
  local no
  if not old then no = place(path) end
  return no or refusal(kind, want, old), old
end

-- A change whose answer was lost asks whether it was made: the file has its version, or whoever replaced that has
-- remembered it. Who replaces what came over the same connection need not: a connection is used again only after its
-- answer came. Nor need what is older than any call may take.
local function remember(old, conn, time)
  if old and old.conn ~= conn and math.abs(tonumber(time) - tonumber(old.mtime)) < RECENT_NS then
    redis.call('SET', base .. 't:' .. trim(old.version), number(old.size), 'PX', TOKEN_MS)
  end
end
local function made_before(again, path, version)
  if again ~= '1' then return nil end
  local now = head_of(path)
  if now and now.version == version then return number(now.size) end
  return redis.call('GET', base .. 't:' .. trim(version)) or nil
end
-- A change that leaves no version is remembered by itself.
local function done_before(again, token)
  return again == '1' and redis.call('GET', base .. 't:' .. token)
end
local function done(token, result)
  redis.call('SET', base .. 't:' .. token, result, 'PX', TOKEN_MS)
  return {'ok', result}
end

-- The chunks of a file that was replaced or removed stay for those who are reading it.
local function drop_chunks(old)
  if old and old.gen ~= '' then
    for i = 0, chunk_count(old.size, old.inline) - 1 do
      redis.call('PEXPIRE', chunk_key(old.gen, i), GRACE_MS)
    end
  end
end

-- After a file was put there.
local function settle(path, old, conn, time)
  if old then
    drop_chunks(old)
    remember(old, conn, time)
  else
    redis.call('ZADD', names, 0, path)
  end
end

-- `data` is a head and all bytes, or is stored under the key `staged`.
local function put(path, old, data, staged)
  local new
  if staged ~= '' then
    new = parse(redis.call('GETRANGE', staged, 0, HEAD - 1))
    redis.call('RENAME', staged, file_key(path))
    redis.call('PERSIST', file_key(path))
  else
    new = parse(string.sub(data, 1, HEAD))
    for i = 0, chunk_count(new.size, new.inline) - 1 do
      local at = HEAD + INLINE + i * CHUNK
      redis.call('SET', chunk_key(new.gen, i), string.sub(data, at + 1, at + CHUNK))
    end
    redis.call('SET', file_key(path), new.gen == '' and data or string.sub(data, 1, HEAD + INLINE))
  end
  settle(path, old, new.conn, new.mtime)
  return number(new.size)
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

-- `head` is that of a file with these bytes alone. The new head is returned.
local function append(path, old, head, data)
  local key, new = file_key(path), parse(head)
  if not old then
    new.size, new.inline = #data, math.min(#data, INLINE)
    if #data > INLINE then new.gen = trim(new.version) end
    put(path, nil, head_text(new) .. data, '')
    return new
  end
  new.size, new.inline, new.gen = old.size + #data, old.inline, old.gen
  if old.gen == '' and new.size <= APPEND_INLINE then
    new.inline = new.size
    redis.call('APPEND', key, data)
    redis.call('SETRANGE', key, 0, head_text(new))
  else
    if new.gen == '' then new.gen = trim(new.version) end
    redis.call('SETRANGE', key, 0, head_text(new))
    add_to_chunks(new.gen, old.size - old.inline, data)
  end
  remember(old, new.conn, new.mtime)
  return new
end

local function drop_file(path, old, conn, time)
  redis.call('ZREM', names, path)
  redis.call('UNLINK', file_key(path))
  drop_chunks(old)
  remember(old, conn, time)
end

local function move_file(from, to, have, old, own)
  redis.call('RENAME', file_key(from), file_key(to))
  redis.call('ZREM', names, from)
  redis.call('ZADD', names, 0, to)
  drop_chunks(old)
  remember(old, own.conn, own.mtime)
  remember(have, own.conn, own.mtime)
end

-- The first and the last number of a journal: how many were cut away, and how many there are.
local function journal_ends(path)
  local cut = tonumber(redis.call('HGET', base .. 'j', path) or 0)
  return cut + 1, cut + redis.call('XLEN', base .. 'j:' .. path)
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
