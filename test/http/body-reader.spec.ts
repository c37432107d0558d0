import type { IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { readText } from '../../src/oauth/request-body.js';

const MAX_BODY_BYTES = 16 * 1024;

/** A request whose body arrives in these parts. */
function requestOf(parts: Iterable<Buffer | string>, headers: Record<string, string> = {}): IncomingMessage {
  const bytes = [...parts].map((part) => Buffer.from(part as string));
  return Object.assign(Readable.from(bytes, { objectMode: false }), { headers }) as unknown as IncomingMessage;
}

describe('protocol §2.4: a body is at most 16 KiB of UTF-8', () => {
  it.each<[string, (string | Buffer)[], string]>([
    ['no bytes', [], ''],
    ['one part', ['{}'], '{}'],
    ['several parts', ['{"a"', ':', '1}'], '{"a":1}'],
    ['a character that is cut in two', [Buffer.from([0xe2, 0x82]), Buffer.from([0xac])], '€'],
    ['16 KiB in one part', ['x'.repeat(MAX_BODY_BYTES)], 'x'.repeat(MAX_BODY_BYTES)],
    ['16 KiB in single bytes', Array.from({ length: MAX_BODY_BYTES }, () => 'x'), 'x'.repeat(MAX_BODY_BYTES)],
  ])('a body of %s is read', async (_what, parts, text) => {
    expect(await readText(requestOf(parts))).toBe(text);
  });

  it.each<[string, (string | Buffer)[]]>([
    ['16 KiB and one byte in one part', ['x'.repeat(MAX_BODY_BYTES + 1)]],
    ['16 KiB and one byte in a second part', ['x'.repeat(MAX_BODY_BYTES), 'x']],
    ['1 MiB', Array.from({ length: 1024 }, () => 'x'.repeat(1024))],
    ['a part that never ends', endless() as unknown as Buffer[]],
  ])('a body of %s is rejected as too large', async (_what, parts) => {
    const request = Symbol.iterator in parts ? requestOf(parts) : (parts as IncomingMessage);
    await expect(readText(request)).rejects.toMatchObject({ code: 'payload_too_large', status: 413 });
  });

  it.each([[[0xff]], [[0x7b, 0xc0, 0x80, 0x7d]], [[0xed, 0xa0, 0x80]], [[0xe2, 0x82]]])(
    'bytes that are not UTF-8 are rejected as an invalid message: %j',
    async (bytes) => {
      await expect(readText(requestOf([Buffer.from(bytes)]))).rejects.toMatchObject({ description: 'Invalid message' });
    },
  );

  it.each(['gzip', 'br', 'GZIP', 'identity, gzip', 'Identity'])(
    'a body in Content-Encoding %s is rejected before it is read',
    async (encoding) => {
      const request = requestOf(['{}'], { 'content-encoding': encoding });
      await expect(readText(request)).rejects.toMatchObject({ code: 'invalid_request', status: 415 });
      expect(request.readableFlowing).not.toBe(true);
    },
  );

  it('a body in Content-Encoding identity is read', async () => {
    expect(await readText(requestOf(['{}'], { 'content-encoding': 'identity' }))).toBe('{}');
  });

  it('a body that is cut off is rejected as an invalid request', async () => {
    const request = requestOf(['{}']);
    request.destroy(new Error('aborted'));
    await expect(readText(request)).rejects.toMatchObject({ code: 'invalid_request', status: 400 });
  });
});

function endless(): IncomingMessage {
  const part = Buffer.alloc(64 * 1024, 'x');
  return Object.assign(
    new Readable({
      read() {
        this.push(part);
      },
    }),
    { headers: {} },
  ) as unknown as IncomingMessage;
}
