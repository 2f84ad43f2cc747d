import { expect, it } from 'vitest';
import { isOlder, readRedisInfo } from '../../src/redis/requirements.ts';

it.each([
  ['6.0.16', true],
  ['5.9.99', true],
  ['6.2.0', false],
  ['6.10.0', false],
  ['7.0.15', false],
])('version %s is older than 6.2.0: %s', (version, expected) => {
  expect(isOlder(version, '6.2.0')).toBe(expected);
});

it('reads the INFO of Redis', () => {
  const info =
    'redis_version:6.0.16\r\nmaxmemory_policy:allkeys-lru\r\naof_enabled:0\r\nrole:slave\r\nconnected_slaves:2\r\n';
  expect(readRedisInfo(info)).toEqual({
    version: '6.0.16',
    isTooOld: true,
    evictionPolicy: 'allkeys-lru',
    isAppendOnly: false,
    role: 'slave',
    isCluster: false,
    replicas: 2,
  });
});

it('ignores a version that another program claims, and returns unknown for missing values', () => {
  expect(readRedisInfo('redis_version:5.0.0\r\nvalkey_version:8.1.0\r\n')).toEqual({
    version: '5.0.0',
    isTooOld: false,
    evictionPolicy: null,
    isAppendOnly: null,
    role: null,
    isCluster: false,
    replicas: 0,
  });
});

it('recognizes a node of a cluster, except the emulation of Dragonfly', () => {
  expect(readRedisInfo('redis_mode:cluster\r\n').isCluster).toBe(true);
  expect(readRedisInfo('redis_mode:cluster\r\ndragonfly_version:df-1\r\n').isCluster).toBe(false);
});
