-- SPDX-License-Identifier: Apache-2.0
-- again, key of the file, -, condition, version wanted, bytes, -, [pieces that were put there before], head
local path, new = path_of(ARGV[2]), parse(ARGV[9])
local before = made_before(ARGV[1], path, new.version)
if before then return {'ok', before} end
local no, old = may_write(path, ARGV[4], ARGV[5])
if no then return no end
if ARGV[8] == '' then return {'ok', number(append(path, old, ARGV[9], ARGV[6]).size)} end
local pieces, gen = tonumber(ARGV[8]), trim(new.version) .. '+'
for i = 0, pieces - 1 do
  if redis.call('EXISTS', chunk_key(gen, i)) == 0 then return {'lost'} end
end
for i = 0, pieces - 1 do
  old = append(path, old, ARGV[9], redis.call('GET', chunk_key(gen, i)))
  redis.call('UNLINK', chunk_key(gen, i))
end
return {'ok', number(old.size)}
