-- SPDX-License-Identifier: Apache-2.0
-- again, key of the file, head that makes it simple, condition, version wanted, head and bytes, key where those were
-- put just before, [size when the chunks were put there before]
local path = path_of(ARGV[2])
local data, staged = ARGV[6], ARGV[7]
if staged ~= '' then data = redis.call('GETRANGE', staged, 0, HEAD - 1) end
if #data < HEAD then return {'lost'} end
local new = parse(string.sub(data, 1, HEAD))
local before = made_before(ARGV[1], path, new.version)
local no, old
if not before then no, old = may_write(path, ARGV[4], ARGV[5]) end
if before or no then
  if staged ~= '' then redis.call('UNLINK', staged) end
  return no or {'ok', before}
end
if ARGV[8] == '' then return {'ok', put(path, old, data, staged)} end
local count = chunk_count(new.size, new.inline)
for i = 0, count - 1 do
  if redis.call('EXISTS', chunk_key(new.gen, i)) == 0 then return {'lost'} end
end
redis.call('SET', file_key(path), data)
for i = 0, count - 1 do redis.call('PERSIST', chunk_key(new.gen, i)) end
settle(path, old, new.conn, new.mtime)
return {'ok', ARGV[8]}
