import { expect, it } from 'vitest';
import { routedTarget } from '../../src/platform/http/connection.js';

it.each([
  ['/', '/'],
  ['/v2/customer/token?x=1', '/v2/customer/token?x=1'],
  ['http://auth.example/v2?x=http://y/', '/v2?x=http://y/'],
  ['HTTPS://auth.example', '/'],
  ['http://auth.example?x=1', '/?x=1'],
  ['http://;x=1/consent', '/consent'],
])('the target %s is routed by its path, without its authority (RFC 9112 §3.2)', (target, path) => {
  expect(routedTarget(target)).toBe(path);
});

it.each(['', '*', 'v2', '/v2#token', '/v2\xa0', 'ftp://auth.example/v2', 'http://auth.example:99999999/'])(
  'the target %j names no route',
  (target) => {
    expect(routedTarget(target)).toBe('*');
  },
);
