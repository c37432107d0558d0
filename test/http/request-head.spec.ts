import type { IncomingMessage } from 'node:http';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { headViolation } from '../../src/platform/http/listeners.js';

const requestWith = (...hosts: string[]) =>
  ({
    httpVersion: '1.1',
    headers: hosts.length > 0 ? { host: hosts[0] } : {},
    rawHeaders: hosts.flatMap((host) => ['Host', host]),
  }) as unknown as IncomingMessage;

const host = fc.oneof(
  fc.domain(),
  fc.ipV4(),
  fc.ipV6().map((address) => `[${address}]`),
  fc.constantFrom('', 'localhost', 'a_b.example', 'xn--bcher-kva.example', 'b%C3%BCcher.example'),
);
const port = fc.oneof(
  fc.constantFrom('', ':'),
  fc.nat(65_535).map((each) => `:${each}`),
);

describe('the Host of a request', () => {
  it('is accepted with any host and any port', () => {
    fc.assert(
      fc.property(host, port, (name, at) => {
        expect(headViolation(requestWith(name + at))).toBeUndefined();
      }),
    );
  });

  it('is rejected if it contains a character that is invalid in a host and in a port', () => {
    const strange = fc.constantFrom(...'/?#@\\ \t"<>^`{|}', '\u00fc', '\0', '%zz');
    fc.assert(
      fc.property(host, strange, host, (before, character, after) => {
        expect(headViolation(requestWith(before + character + after))).toBe('invalid Host');
      }),
    );
  });

  it('is rejected if the request has two Host headers', () => {
    fc.assert(
      fc.property(host, host, (one, two) => {
        expect(headViolation(requestWith(one, two))).toBe('more than one Host');
      }),
    );
  });
});
