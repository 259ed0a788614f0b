-- SPDX-License-Identifier: Apache-2.0
-- again, from, to, condition of the target, version wanted, head
local from, to, new = ARGV[2], ARGV[3], parse(ARGV[6])
local before = made_before(ARGV[1], to, new.version)
if before then return {'ok', before} end
local own = head_of(from)
if not own then return is_dir(from) and {'dir', from} or {'none'} end
local no, old = may_write(to, ARGV[4], ARGV[5])
if no then return no end
new.size, new.inline = own.size, own.inline
if own.gen ~= '' then new.gen = trim(new.version) end
redis.call('COPY', file_key(from), file_key(to), 'REPLACE')
redis.call('SETRANGE', file_key(to), 0, head_text(new))
if own.gen ~= '' then
  for i = 0, chunk_count(own.size, own.inline) - 1 do
    redis.call('COPY', chunk_key(own.gen, i), chunk_key(new.gen, i))
  end
end
settle(to, old, new.conn, new.mtime)
return {'ok', number(own.size)}
