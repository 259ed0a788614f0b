-- SPDX-License-Identifier: Apache-2.0
-- The usual write: the file exists with the expected head, in one string, and the writer knows that. It comes before
-- everything else, so that such a write pays for nothing else.
if redis.call('GETRANGE', ARGV[2], 0, #ARGV[3] - 1) == ARGV[3] then
  if ARGV[7] == '' then
    redis.call('SET', ARGV[2], ARGV[6])
  else
    redis.call('RENAME', ARGV[7], ARGV[2])
    redis.call('PERSIST', ARGV[2])
  end
  return 1
end
