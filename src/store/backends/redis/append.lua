-- SPDX-License-Identifier: Apache-2.0
-- again, path, condition, version wanted, version given, time, bytes, [pieces that were put there before]
local path, version = ARGV[2], ARGV[5]
local before = done_before(ARGV[1], version)
if before then return {'ok', before} end
local no, old = may_write(path, ARGV[3], ARGV[4])
if no then return no end
if ARGV[8] == '' then return done(version, append(path, old, version, ARGV[6], ARGV[7])) end
local pieces, sum = tonumber(ARGV[8]), 0
for i = 0, pieces - 1 do
  if redis.call('EXISTS', chunk_key(version .. '+', i)) == 0 then return {'lost'} end
end
for i = 0, pieces - 1 do
  local key = chunk_key(version .. '+', i)
  sum = append(path, old, version, ARGV[6], redis.call('GET', key))
  redis.call('UNLINK', key)
  old = redis.call('HMGET', file_key(path), 'v', 's', 'i', 'g')
end
return done(version, sum)
