import { expect, it } from 'vitest';
import { isValidTarget } from '../../src/platform/http/service-http-adapter.js';

it.each(['/', '/v2/customer/token?x=1', 'http://auth.example/v2', 'HTTPS://auth.example'])(
  'the target %s may name a route (RFC 9112 §3.2)',
  (target) => {
    expect(isValidTarget(target)).toBe(true);
  },
);

it.each(['', '*', 'v2', '/v2#token', '/v2\xa0', 'ftp://auth.example/v2', 'http://auth.example:99999999/'])(
  'the target %j names no route',
  (target) => {
    expect(isValidTarget(target)).toBe(false);
  },
);
