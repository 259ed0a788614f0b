-- SPDX-License-Identifier: Apache-2.0
-- again, from, to, condition of the target, version wanted, version given, time
local from, to, version = ARGV[2], ARGV[3], ARGV[6]
local before = done_before(ARGV[1], version)
if before then return {'ok', before} end
local own = redis.call('HMGET', file_key(from), 'v', 's', 'i', 'g')
if not own[1] then return is_dir(from) and {'dir', from} or {'none'} end
local no, old = may_write(to, ARGV[4], ARGV[5])
if no then return no end
redis.call('COPY', file_key(from), file_key(to), 'REPLACE')
redis.call('HSET', file_key(to), 'v', version, 'm', ARGV[7], 'g', own[4] ~= '' and version or '')
if own[4] ~= '' then
  for i = 0, chunk_count(tonumber(own[2]), tonumber(own[3])) - 1 do
    redis.call('COPY', chunk_key(own[4], i), chunk_key(version, i))
  end
end
if old[1] then drop_chunks(old) else redis.call('ZADD', names, 0, to) end
return done(version, own[2])
