-- SPDX-License-Identifier: Apache-2.0
-- again, path, condition, version wanted, version given, time, bytes, [size when the chunks were put there before]
local path, version = ARGV[2], ARGV[5]
local before = done_before(ARGV[1], version)
if before then return {'ok', before} end
local no, old = may_write(path, ARGV[3], ARGV[4])
if no then return no end
if ARGV[8] == '' then return done(version, put(path, old, version, ARGV[6], ARGV[7])) end
local count = chunk_count(tonumber(ARGV[8]), #ARGV[7])
for i = 0, count - 1 do
  if redis.call('EXISTS', chunk_key(version, i)) == 0 then return {'lost'} end
end
redis.call('HSET', file_key(path), 'v', version, 's', ARGV[8], 'm', ARGV[6], 'i', #ARGV[7], 'g', version, 'd', ARGV[7])
for i = 0, count - 1 do redis.call('PERSIST', chunk_key(version, i)) end
if old[1] then drop_chunks(old) else redis.call('ZADD', names, 0, path) end
return done(version, ARGV[8])
